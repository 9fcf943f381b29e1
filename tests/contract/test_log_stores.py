"""The contracts of the log's stores on the fakes that other tests trust, on moto and on ministack."""

import pytest
from support.emulators import Aws
from support.log_fakes import FakeCheckpoints, FakeKeys, FakeLog, FakeTree

from factbook.adapters.log.dynamodb_log import DynamoLog
from factbook.adapters.log.dynamodb_sealing_keys import DynamoKeys
from factbook.adapters.log.dynamodb_tree import DynamoTree
from factbook.adapters.log.s3_checkpoints import S3Checkpoints

from .log_stores import (
    CheckpointStoreContract,
    KeyStoreContract,
    LogStoreContract,
    TreePagesContract,
    TreeStoreContract,
)


class TestFakes(LogStoreContract, KeyStoreContract, TreePagesContract, CheckpointStoreContract):
    @pytest.fixture(autouse=True)
    def _stores(self) -> None:
        self.log, self.keys, self.tree, self.published = FakeLog(), FakeKeys(), FakeTree(), FakeCheckpoints()


class OnAws(LogStoreContract, KeyStoreContract, TreeStoreContract, CheckpointStoreContract):
    def stand_on(self, aws: Aws) -> None:
        dynamodb, settings = aws.client("dynamodb"), aws.settings
        self.log = DynamoLog(dynamodb, settings.log_table)
        self.keys = DynamoKeys(dynamodb, settings.keys_table)
        self.tree = DynamoTree(dynamodb, settings.access_table)
        self.published = S3Checkpoints(aws.client("s3"), settings.checkpoints_bucket)


class TestDynamoAndS3OnMoto(OnAws):
    @pytest.fixture(autouse=True)
    def _stores(self, moto: Aws) -> None:
        self.stand_on(moto)


class TestDynamoAndS3OnMinistack(TreePagesContract, OnAws):
    @pytest.fixture(autouse=True)
    def _stores(self, ministack: Aws) -> None:
        self.stand_on(ministack)
