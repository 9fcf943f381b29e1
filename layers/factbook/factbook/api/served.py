"""Every path that some function serves, with its methods: what a function says of a route that is not its own.

A function knows its own routes alone, as importing those of the others would slow its start; a test holds this table
against all of them.
"""

SERVED = {
    "/health": ("GET",),
    "/v1/identity/whoami": ("GET",),
    "/v1/access/tokens": ("GET", "POST"),
    "/v1/access/tokens/{id}": ("DELETE",),
    "/v1/memory/facts": ("GET", "POST"),
    "/v1/memory/facts/batch": ("POST",),
    "/v1/memory/facts/by-key": ("GET",),
    "/v1/memory/facts/{id}": ("GET", "DELETE"),
    "/v1/memory/facts/{id}/supersede": ("POST",),
    "/v1/memory/facts/{id}/verify": ("POST",),
    "/v1/memory/facts/{id}/revisions": ("GET",),
    "/v1/memory/facts/{id}/content": ("GET",),
    "/v1/memory/facts/{id}/provenance": ("GET",),
    "/v1/memory/facts/{id}/confirm": ("POST",),
    "/v1/memory/facts/{id}/reject": ("POST",),
    "/v1/memory/remember": ("POST",),
    "/v1/memory/reviews": ("GET",),
    "/v1/memory/agents/{agentId}/memories": ("GET",),
    "/v1/memory/types": ("GET",),
    "/v1/memory/blobs": ("POST",),
    "/v1/memory/retrieve": ("POST",),
    "/v1/memory/context": ("POST",),
    "/v1/memory/runs": ("GET",),
    "/v1/memory/runs/{runId}/log": ("GET", "POST"),
    "/v1/memory/runs/{runId}/log/verify": ("GET",),
    "/v1/memory/runs/{runId}/log/proof": ("GET",),
    "/v1/memory/log/{logId}": ("GET",),
    "/v1/memory/threads/{threadId}/messages": ("GET",),
    "/v1/memory/checkpoints": ("GET", "POST"),
    "/v1/memory/checkpoints/latest": ("GET",),
    "/v1/memory/checkpoints/leaves": ("GET",),
    "/v1/memory/policy": ("GET", "PUT"),
    "/v1/memory/status": ("GET",),
}
