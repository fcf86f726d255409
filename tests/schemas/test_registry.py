"""A real registry: what it takes, what it refuses, and records that travel by its ids."""

from __future__ import annotations

import json
import socket
import time
import uuid
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from typer.testing import CliRunner

from ops.broker.kinds import BrokerHandle
from ops.cli.schemas import app
from ops.registry import compare, register, register_one, subject_of
from streams.topics_admin import create, open_admin
from tallystick.codec import FingerprintCodec
from tallystick.codec_registry import RegistryCodec, open_registry
from tallystick.errors import CallerError, OperatorError, SchemaIncompatible, UndecodableRecord
from tallystick.records import Attempt, AttemptOutcome, Tick
from tallystick.schemas import SCHEMA_TOPICS, parsed, schema_text
from tallystick.topics import Topic, full_name
from tests.golden.samples import FOLDER, SAMPLES

TICK = Tick(partition=1, at_ms=2)
RECEIVE_S = 20.0


@pytest.fixture
def tenant() -> str:
    """A topic prefix, and so a set of subjects, of this test's own."""
    return f"r-{uuid.uuid4().hex[:10]}."


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.registry
def test_all_schemas_are_registered_once_and_under_the_strict_rule(
    registry: str, tenant: str
) -> None:
    first = register(registry, tenant)
    assert [row.subject for row in first] == [subject_of(tenant, t) for t in SCHEMA_TOPICS]
    assert register(registry, tenant) == first
    assert compare(registry, tenant) == []
    client = open_registry(registry)
    assert {client.get_compatibility(row.subject) for row in first} == {"FULL_TRANSITIVE"}


@pytest.mark.registry
def test_an_incompatible_change_is_refused(registry: str, tenant: str) -> None:
    register(registry, tenant)
    client = open_registry(registry)
    subject = subject_of(tenant, Topic.ATTEMPTS)
    schema = json.loads(schema_text(Topic.ATTEMPTS))
    schema["fields"].append({"name": "later", "type": "string"})
    with pytest.raises(SchemaIncompatible) as caught:
        register_one(client, subject, json.dumps(schema))
    assert caught.value.where == subject
    assert "\n" not in str(caught.value)
    assert compare(registry, tenant) == []
    schema["fields"][-1]["default"] = ""
    assert register_one(client, subject, json.dumps(schema)).schema_id


@pytest.mark.registry
def test_a_missing_subject_and_a_laxer_rule_are_named(registry: str, tenant: str) -> None:
    assert {row.subject for row in compare(registry, tenant)} == {
        subject_of(tenant, topic) for topic in SCHEMA_TOPICS
    }
    register(registry, tenant)
    subject = subject_of(tenant, Topic.PLANS)
    open_registry(registry).set_compatibility(subject, "NONE")
    (found,) = compare(registry, tenant)
    assert found.subject == subject
    assert "NONE" in found.reason


@pytest.mark.registry
@pytest.mark.parametrize("topic", SCHEMA_TOPICS)
def test_every_record_travels_in_the_wire_format(registry: str, topic: Topic) -> None:
    codec = RegistryCodec(registry, "wire.", auto_register=True)
    value, headers = codec.encode(topic, SAMPLES[topic])
    bare, _ = FingerprintCodec().encode(topic, SAMPLES[topic])
    assert value[0] == 0
    assert value[5:] == bare
    assert headers == []
    assert RegistryCodec(registry, "wire.").decode(topic, value, headers) == SAMPLES[topic]


@pytest.mark.registry
@pytest.mark.broker
def test_records_written_through_it_to_kafka_are_read_back(
    registry: str, broker: BrokerHandle, prefix: str
) -> None:
    create(open_admin(broker.bootstrap), prefix, partitions=1, replication=1)
    register(registry, prefix)
    codec = RegistryCodec(registry, prefix)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": "all"})
    for topic in SCHEMA_TOPICS:
        value, headers = codec.encode(topic, SAMPLES[topic])
        producer.produce(full_name(prefix, topic), key=b"k", value=value, headers=headers)
    assert producer.flush(RECEIVE_S) == 0
    reader = RegistryCodec(registry, prefix)
    found = {
        topic: reader.decode(topic, message.value(), message.headers())
        for topic, message in received(broker.bootstrap, prefix).items()
    }
    assert found == SAMPLES


def received(bootstrap: str, prefix: str) -> dict[Topic, Message]:
    """The first message of every topic with a schema."""
    names = {full_name(prefix, topic): topic for topic in SCHEMA_TOPICS}
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": prefix,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.assign([TopicPartition(name, 0, 0) for name in names])
    found: dict[Topic, Message] = {}
    deadline = time.monotonic() + RECEIVE_S
    while len(found) < len(names) and time.monotonic() < deadline:
        message = consumer.poll(0.5)
        if message is not None and message.error() is None:
            found[names[str(message.topic())]] = message
    consumer.close()
    return found


@pytest.mark.registry
def test_a_status_from_the_future_reads_as_unknown(registry: str, tenant: str) -> None:
    register(registry, tenant)
    text = (FOLDER / "future" / "attempts.avsc").read_text(encoding="utf-8")
    newer = register_one(open_registry(registry), subject_of(tenant, Topic.ATTEMPTS), text)
    assert parsed(text)
    value = b"\x00" + newer.schema_id.to_bytes(4, "big")
    value += (FOLDER / "future" / "attempts.bin").read_bytes()
    record = RegistryCodec(registry, tenant).decode(Topic.ATTEMPTS, value, None)
    assert isinstance(record, Attempt)
    assert record.outcome is AttemptOutcome.UNKNOWN


@pytest.mark.registry
def test_writing_under_an_unregistered_schema_is_an_operators_error(
    registry: str, tenant: str
) -> None:
    with pytest.raises(OperatorError, match="run `tallystick schemas register`"):
        RegistryCodec(registry, tenant).encode(Topic.COMMITS_TICKS, TICK)


@pytest.mark.registry
@pytest.mark.parametrize(
    ("value", "says"),
    [
        (None, "value is null"),
        (b"", "0 bytes are no framed value"),
        (b"\x00\x00\x00", "3 bytes are no framed value"),
        (b"\x01\x00\x00\x00\x01\x02\x04", "first byte is 1, not 0"),
        (b"\x00\x7f\xff\xff\xff\x02\x04", "registry knows no schema 2147483647"),
    ],
)
def test_what_is_no_framed_record_is_refused(
    registry: str, tenant: str, value: bytes | None, says: str
) -> None:
    with pytest.raises(UndecodableRecord, match=says):
        RegistryCodec(registry, tenant).decode(Topic.COMMITS_TICKS, value, None)


@pytest.mark.registry
def test_the_wrong_bytes_under_a_known_id_are_refused(registry: str, tenant: str) -> None:
    codec = RegistryCodec(registry, tenant, auto_register=True)
    value, _ = codec.encode(Topic.COMMITS_TICKS, TICK)
    for end in range(5, len(value)):
        with pytest.raises(UndecodableRecord, match="do not follow their schema"):
            codec.decode(Topic.COMMITS_TICKS, value[:end], None)
    with pytest.raises(UndecodableRecord, match="1 bytes follow the record"):
        codec.decode(Topic.COMMITS_TICKS, value + b"\x00", None)


def test_an_absent_registry_never_makes_a_record_undecodable() -> None:
    codec = RegistryCodec(f"http://127.0.0.1:{closed_port()}", "t.")
    with pytest.raises(OperatorError, match="does not answer"):
        codec.decode(Topic.COMMITS_TICKS, b"\x00\x00\x00\x00\x01\x02\x04", None)


def test_an_address_that_is_none_is_the_callers_error() -> None:
    with pytest.raises(CallerError, match="is not usable"):
        RegistryCodec("registry:8081", "t.")


@pytest.mark.registry
def test_the_command_line_registers_and_checks(registry: str, tenant: str) -> None:
    options = ["--registry", registry, "--prefix", tenant, "--json"]
    before = run("check", *options)
    assert before.exit_code == 1
    assert len(json.loads(before.stdout)["registry"]) == len(SCHEMA_TOPICS)
    done = run("register", *options)
    assert done.exit_code == 0
    assert len(json.loads(done.stdout)["registered"]) == len(SCHEMA_TOPICS)
    after = run("check", *options)
    assert after.exit_code == 0
    assert json.loads(after.stdout) == {"breaks": [], "registry": []}


def test_the_command_line_checks_without_a_registry() -> None:
    done = run("check")
    assert done.exit_code == 0
    assert f"{len(SCHEMA_TOPICS)} schemas fit every released version" in done.stdout


def test_the_command_line_says_in_one_line_what_is_missing() -> None:
    nameless = run("register")
    assert nameless.exit_code == 2
    assert "give --registry URL" in nameless.stderr
    away = run("check", "--registry", f"http://127.0.0.1:{closed_port()}")
    assert away.exit_code == 1
    assert "does not answer" in away.stderr
    assert len(away.stderr.strip().splitlines()) == 1


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, arguments)
