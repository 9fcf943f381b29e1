"""Who writes in the contracts of stores."""

import pytest

from factbook.domain.access.principals import Actor, Principal


class WithWriter:
    """Each test has a tenant of its own, and an administrator of it who writes."""

    tenant: str
    writer: Principal

    @pytest.fixture(autouse=True)
    def _writer(self, tenant: str) -> None:
        self.tenant = tenant
        self.writer = Principal(tenant, Actor(kind="user", id="ann"), admin=True)
