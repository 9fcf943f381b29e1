"""How a limit is put to a caller: as the error that the service answers."""

from factbook_local.limits import LIMITS


class Refused(Exception):
    """What the service says: `code` and `message` of its error, `status` of its answer."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.code, self.message, self.status = code, message, status


def invalid(message: str) -> Refused:
    return Refused("ValidationException", message)


def over(limit: str, measured: int) -> bool:
    return measured > LIMITS[limit].most
