"""Prints what each built layer weighs: files as they are, and as the zip that is uploaded."""

import sys
import zipfile
from io import BytesIO
from pathlib import Path

MB = 1_000_000
LIMIT = 250 * MB  # of a function with all its layers, unzipped


def weigh(folder: Path) -> tuple[int, int]:
    """(bytes unzipped, bytes zipped)."""
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        files = [path for path in folder.rglob("*") if path.is_file()]
        for path in files:
            archive.write(path, path.relative_to(folder))
    return sum(path.stat().st_size for path in files), packed.tell()


def main() -> int:
    layers = sorted(Path(sys.argv[1]).glob("*Layer"))
    sizes = {layer.name: weigh(layer) for layer in layers}
    for name, (unzipped, zipped) in sizes.items():
        print(f"{name:16} {unzipped / MB:6.1f} MB unzipped {zipped / MB:6.1f} MB zipped")
    total = sum(unzipped for unzipped, _ in sizes.values())
    print(f"{'together':16} {total / MB:6.1f} MB of {LIMIT // MB} MB")
    return 0 if sizes and total < LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
