"""The commands of this package, which `factbook` (in `cli/`) takes up where the package is there."""

COMMANDS = {
    "local": ("factbook_local.local", "the service on this machine"),
    "demo": ("factbook_local.demo", "a fact's life, told over HTTP"),
}
