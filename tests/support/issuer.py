"""A real OpenID Connect issuer for tests: oidc-provider on Node, a process of its own on this machine."""

import base64
import hashlib
import json
import os
import re
import secrets
import shutil
import socket
import subprocess
from collections.abc import Sequence
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlencode, urlsplit
from urllib.request import HTTPCookieProcessor, HTTPRedirectHandler, ProxyHandler, Request, build_opener

from joserfc.jwk import RSAKey

RECIPE = Path(__file__).parents[1] / "real" / "oidc"
INSTALL_SECONDS = 300
AUDIENCE = "https://memory.example.com"
BACK = "https://app.example.com/back"
CLIENTS = [
    {
        "client_id": "crm",
        "client_secret": "a-secret-of-tests-that-is-long-enough",
        "grant_types": ["client_credentials"],
        "response_types": [],
        "redirect_uris": [],
    },
    {
        "client_id": "app",
        "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code"],
        "response_types": ["code"],
        "redirect_uris": [BACK],
    },
]


def why_not() -> str | None:
    """What this machine lacks to run the issuer, if anything."""
    missing = [tool for tool in ("node", "npm") if shutil.which(tool) is None]
    return f"an OpenID Connect issuer needs {', '.join(missing)} on the PATH" if missing else None


def new_keys(*names: str) -> list[dict[str, Any]]:
    made = [RSAKey.generate_key(2048, {"kid": name, "use": "sig"}) for name in names]
    return [dict(key.as_dict(private=True)) for key in made]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class RealIssuer:
    """Keeps its address when it is stopped and started again, with other keys if need be."""

    def __init__(self, home: Path) -> None:
        self._home = home
        shutil.copytree(RECIPE, home, dirs_exist_ok=True)
        subprocess.run(
            ["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"],
            cwd=home,
            check=True,
            timeout=INSTALL_SECONDS,
        )
        self._port = _free_port()
        self.url = f"http://127.0.0.1:{self._port}"

    def start(self, keys: Sequence[dict[str, Any]]) -> None:
        (self._home / "keys.json").write_text(json.dumps({"keys": list(keys)}))
        (self._home / "clients.json").write_text(json.dumps(CLIENTS))
        with (self._home / "stderr.log").open("ab") as log:
            self._process = subprocess.Popen(
                ["node", "issuer.mjs", str(self._port), "keys.json", "clients.json"],
                cwd=self._home,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
                text=True,
            )
        assert self._process.stdout is not None
        if self._process.stdout.readline().strip() != self.url:
            self.stop()
            raise RuntimeError(f"no issuer: {(self._home / 'stderr.log').read_text()[-2000:]}")

    def stop(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def program_token(self, audience: str = AUDIENCE) -> str:
        """The access token that the program `crm` gets with its secret."""
        asked = {"grant_type": "client_credentials", "scope": "memory", "resource": audience}
        secret = base64.b64encode(b"crm:a-secret-of-tests-that-is-long-enough").decode()
        answer = _Browser().post(f"{self.url}/token", asked, {"Authorization": f"Basic {secret}"})
        return str(json.loads(answer)["access_token"])

    def sign_in(self, person: str) -> dict[str, str]:
        """Sign a person in to the application `app` as a browser would: its access token and ID token."""
        verifier, browser = secrets.token_urlsafe(48), _Browser()
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
        asked = {
            "client_id": "app",
            "response_type": "code",
            "redirect_uri": BACK,
            "scope": "openid memory",
            "resource": AUDIENCE,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            "nonce": "n-1",
        }
        where, page = browser.follow(f"{self.url}/auth?{urlencode(asked)}")
        for form in ({"prompt": "login", "login": person, "password": "x"}, {"prompt": "consent"}):
            action = re.search(r'action="([^"]+)"', page)
            assert action is not None, page
            where, page = browser.follow(action[1], form)
        code = parse_qs(urlsplit(where).query)["code"][0]
        exchange = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": BACK,
            "client_id": "app",
            "code_verifier": verifier,
            "resource": AUDIENCE,
        }
        answer: dict[str, str] = json.loads(browser.post(f"{self.url}/token", exchange))
        return answer


class _Stay(HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class _Browser:
    """Keeps cookies, and follows redirects until they leave this machine."""

    def __init__(self) -> None:
        self._open = build_opener(ProxyHandler({}), HTTPCookieProcessor(CookieJar()), _Stay()).open

    def post(self, url: str, form: dict[str, str], headers: dict[str, str] | None = None) -> str:
        with self._open(Request(url, urlencode(form).encode(), headers or {}), timeout=10) as answer:
            return str(answer.read().decode())

    def follow(self, url: str, form: dict[str, str] | None = None) -> tuple[str, str]:
        """The last address and its page."""
        for _ in range(10):
            if not url.startswith("http://127.0.0.1"):
                return url, ""
            try:
                with self._open(
                    Request(url, urlencode(form).encode() if form else None), timeout=10
                ) as answer:
                    return url, answer.read().decode()
            except HTTPError as moved:
                location = moved.headers.get("location")
                if location is None:
                    raise AssertionError(moved.read().decode()) from moved
                url, form = (location if "://" in location else f"{url[: url.index('/', 8)]}{location}"), None
        raise AssertionError("redirects without end")
