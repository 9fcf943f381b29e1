"""What every test starts from: no account, no region of the machine's, no proxy to this machine."""

import os

for variable in [
    name
    for name in os.environ
    if name.startswith(("AWS_", "KINDGI_", "MEMORY_", "FACTBOOK_URL", "FACTBOOK_TOKEN"))
]:
    del os.environ[variable]
os.environ |= {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "NO_PROXY": "127.0.0.1,localhost",
}
