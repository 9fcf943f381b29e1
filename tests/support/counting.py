"""How much of a tenant is stored: what a refused request must leave as it was."""

from factbook.adapters.dynamodb.key_parts import part
from support.emulators import Aws


def stored_items(aws: Aws, tenant: str) -> int:
    """Items of the facts table and objects of the blobs bucket that belong to a tenant."""
    pages = aws.client("dynamodb").get_paginator("scan").paginate(TableName=aws.settings.facts_table)
    items = [
        item for page in pages for item in page["Items"] if item["pk"]["S"].startswith(part(tenant) + "|")
    ]
    objects = aws.client("s3").list_objects_v2(
        Bucket=aws.settings.blobs_bucket, Prefix=f"facts/{part(tenant)}/"
    )
    return len(items) + objects.get("KeyCount", 0)
