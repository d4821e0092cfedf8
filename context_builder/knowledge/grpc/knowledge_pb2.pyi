import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Access(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ACCESS_DENIED: _ClassVar[Access]
    ACCESS_REDACTED: _ClassVar[Access]
    ACCESS_READ: _ClassVar[Access]
ACCESS_DENIED: Access
ACCESS_REDACTED: Access
ACCESS_READ: Access

class Node(_message.Message):
    __slots__ = ("ref", "kind", "title", "content", "version", "sensitivity", "status", "project", "module", "session", "tags", "speaker", "time", "superseded_by", "cites", "projections", "quality", "reuse")
    REF_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SENSITIVITY_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    MODULE_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    SPEAKER_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    SUPERSEDED_BY_FIELD_NUMBER: _ClassVar[int]
    CITES_FIELD_NUMBER: _ClassVar[int]
    PROJECTIONS_FIELD_NUMBER: _ClassVar[int]
    QUALITY_FIELD_NUMBER: _ClassVar[int]
    REUSE_FIELD_NUMBER: _ClassVar[int]
    ref: str
    kind: str
    title: str
    content: str
    version: int
    sensitivity: str
    status: str
    project: str
    module: str
    session: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    speaker: str
    time: _timestamp_pb2.Timestamp
    superseded_by: str
    cites: _containers.RepeatedScalarFieldContainer[str]
    projections: _containers.RepeatedScalarFieldContainer[str]
    quality: float
    reuse: float
    def __init__(self, ref: _Optional[str] = ..., kind: _Optional[str] = ..., title: _Optional[str] = ..., content: _Optional[str] = ..., version: _Optional[int] = ..., sensitivity: _Optional[str] = ..., status: _Optional[str] = ..., project: _Optional[str] = ..., module: _Optional[str] = ..., session: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ..., speaker: _Optional[str] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., superseded_by: _Optional[str] = ..., cites: _Optional[_Iterable[str]] = ..., projections: _Optional[_Iterable[str]] = ..., quality: _Optional[float] = ..., reuse: _Optional[float] = ...) -> None: ...

class Edge(_message.Message):
    __slots__ = ("from_ref", "to_ref", "type", "weight")
    FROM_REF_FIELD_NUMBER: _ClassVar[int]
    TO_REF_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    from_ref: str
    to_ref: str
    type: str
    weight: float
    def __init__(self, from_ref: _Optional[str] = ..., to_ref: _Optional[str] = ..., type: _Optional[str] = ..., weight: _Optional[float] = ...) -> None: ...

class WeightedRef(_message.Message):
    __slots__ = ("ref", "weight")
    REF_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    ref: str
    weight: float
    def __init__(self, ref: _Optional[str] = ..., weight: _Optional[float] = ...) -> None: ...

class Scope(_message.Message):
    __slots__ = ("project_id", "module_id", "session_ids")
    PROJECT_ID_FIELD_NUMBER: _ClassVar[int]
    MODULE_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_IDS_FIELD_NUMBER: _ClassVar[int]
    project_id: str
    module_id: str
    session_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, project_id: _Optional[str] = ..., module_id: _Optional[str] = ..., session_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class NeighbourhoodRequest(_message.Message):
    __slots__ = ("tenant", "seeds", "depth", "edge_types", "limit", "longest")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    SEEDS_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    EDGE_TYPES_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    LONGEST_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    seeds: _containers.RepeatedCompositeFieldContainer[WeightedRef]
    depth: int
    edge_types: _containers.RepeatedScalarFieldContainer[str]
    limit: int
    longest: int
    def __init__(self, tenant: _Optional[str] = ..., seeds: _Optional[_Iterable[_Union[WeightedRef, _Mapping]]] = ..., depth: _Optional[int] = ..., edge_types: _Optional[_Iterable[str]] = ..., limit: _Optional[int] = ..., longest: _Optional[int] = ...) -> None: ...

class NeighbourhoodReply(_message.Message):
    __slots__ = ("nodes", "proximity", "edges")
    NODES_FIELD_NUMBER: _ClassVar[int]
    PROXIMITY_FIELD_NUMBER: _ClassVar[int]
    EDGES_FIELD_NUMBER: _ClassVar[int]
    nodes: _containers.RepeatedCompositeFieldContainer[Node]
    proximity: _containers.RepeatedCompositeFieldContainer[WeightedRef]
    edges: _containers.RepeatedCompositeFieldContainer[Edge]
    def __init__(self, nodes: _Optional[_Iterable[_Union[Node, _Mapping]]] = ..., proximity: _Optional[_Iterable[_Union[WeightedRef, _Mapping]]] = ..., edges: _Optional[_Iterable[_Union[Edge, _Mapping]]] = ...) -> None: ...

class SearchRequest(_message.Message):
    __slots__ = ("tenant", "intent", "top_k", "threshold", "kinds", "scope", "longest", "without", "speaker", "since", "until", "sensitivities")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    INTENT_FIELD_NUMBER: _ClassVar[int]
    TOP_K_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    LONGEST_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_FIELD_NUMBER: _ClassVar[int]
    SPEAKER_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    SENSITIVITIES_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    intent: str
    top_k: int
    threshold: float
    kinds: _containers.RepeatedScalarFieldContainer[str]
    scope: Scope
    longest: int
    without: _containers.RepeatedScalarFieldContainer[str]
    speaker: str
    since: _timestamp_pb2.Timestamp
    until: _timestamp_pb2.Timestamp
    sensitivities: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, tenant: _Optional[str] = ..., intent: _Optional[str] = ..., top_k: _Optional[int] = ..., threshold: _Optional[float] = ..., kinds: _Optional[_Iterable[str]] = ..., scope: _Optional[_Union[Scope, _Mapping]] = ..., longest: _Optional[int] = ..., without: _Optional[_Iterable[str]] = ..., speaker: _Optional[str] = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., sensitivities: _Optional[_Iterable[str]] = ...) -> None: ...

class Passage(_message.Message):
    __slots__ = ("place", "text", "headings", "opens", "likeness")
    PLACE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    HEADINGS_FIELD_NUMBER: _ClassVar[int]
    OPENS_FIELD_NUMBER: _ClassVar[int]
    LIKENESS_FIELD_NUMBER: _ClassVar[int]
    place: int
    text: str
    headings: _containers.RepeatedScalarFieldContainer[str]
    opens: bool
    likeness: float
    def __init__(self, place: _Optional[int] = ..., text: _Optional[str] = ..., headings: _Optional[_Iterable[str]] = ..., opens: bool = ..., likeness: _Optional[float] = ...) -> None: ...

class VectorDocument(_message.Message):
    __slots__ = ("node", "similarity", "by_meaning", "passages", "seed")
    NODE_FIELD_NUMBER: _ClassVar[int]
    SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    BY_MEANING_FIELD_NUMBER: _ClassVar[int]
    PASSAGES_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    node: Node
    similarity: float
    by_meaning: bool
    passages: _containers.RepeatedCompositeFieldContainer[Passage]
    seed: float
    def __init__(self, node: _Optional[_Union[Node, _Mapping]] = ..., similarity: _Optional[float] = ..., by_meaning: bool = ..., passages: _Optional[_Iterable[_Union[Passage, _Mapping]]] = ..., seed: _Optional[float] = ...) -> None: ...

class SearchReply(_message.Message):
    __slots__ = ("documents",)
    DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
    documents: _containers.RepeatedCompositeFieldContainer[VectorDocument]
    def __init__(self, documents: _Optional[_Iterable[_Union[VectorDocument, _Mapping]]] = ...) -> None: ...

class FindRequest(_message.Message):
    __slots__ = ("tenant", "types", "statuses", "modules", "tags", "limit", "scope", "longest")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    TYPES_FIELD_NUMBER: _ClassVar[int]
    STATUSES_FIELD_NUMBER: _ClassVar[int]
    MODULES_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    LONGEST_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    types: _containers.RepeatedScalarFieldContainer[str]
    statuses: _containers.RepeatedScalarFieldContainer[str]
    modules: _containers.RepeatedScalarFieldContainer[str]
    tags: _containers.RepeatedScalarFieldContainer[str]
    limit: int
    scope: Scope
    longest: int
    def __init__(self, tenant: _Optional[str] = ..., types: _Optional[_Iterable[str]] = ..., statuses: _Optional[_Iterable[str]] = ..., modules: _Optional[_Iterable[str]] = ..., tags: _Optional[_Iterable[str]] = ..., limit: _Optional[int] = ..., scope: _Optional[_Union[Scope, _Mapping]] = ..., longest: _Optional[int] = ...) -> None: ...

class NodesRequest(_message.Message):
    __slots__ = ("tenant", "refs", "longest")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    REFS_FIELD_NUMBER: _ClassVar[int]
    LONGEST_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    refs: _containers.RepeatedScalarFieldContainer[str]
    longest: int
    def __init__(self, tenant: _Optional[str] = ..., refs: _Optional[_Iterable[str]] = ..., longest: _Optional[int] = ...) -> None: ...

class NodesReply(_message.Message):
    __slots__ = ("nodes",)
    NODES_FIELD_NUMBER: _ClassVar[int]
    nodes: _containers.RepeatedCompositeFieldContainer[Node]
    def __init__(self, nodes: _Optional[_Iterable[_Union[Node, _Mapping]]] = ...) -> None: ...

class Agent(_message.Message):
    __slots__ = ("tenant", "roles", "sub", "oversees")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    SUB_FIELD_NUMBER: _ClassVar[int]
    OVERSEES_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    roles: _containers.RepeatedScalarFieldContainer[str]
    sub: str
    oversees: bool
    def __init__(self, tenant: _Optional[str] = ..., roles: _Optional[_Iterable[str]] = ..., sub: _Optional[str] = ..., oversees: bool = ...) -> None: ...

class GovernedSource(_message.Message):
    __slots__ = ("ref", "tenant", "kind", "sensitivity", "status", "project", "module", "session", "tags")
    REF_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SENSITIVITY_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    MODULE_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    ref: str
    tenant: str
    kind: str
    sensitivity: str
    status: str
    project: str
    module: str
    session: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, ref: _Optional[str] = ..., tenant: _Optional[str] = ..., kind: _Optional[str] = ..., sensitivity: _Optional[str] = ..., status: _Optional[str] = ..., project: _Optional[str] = ..., module: _Optional[str] = ..., session: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ...) -> None: ...

class DecideRequest(_message.Message):
    __slots__ = ("agent", "sources", "intent", "time")
    AGENT_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    INTENT_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    agent: Agent
    sources: _containers.RepeatedCompositeFieldContainer[GovernedSource]
    intent: str
    time: _timestamp_pb2.Timestamp
    def __init__(self, agent: _Optional[_Union[Agent, _Mapping]] = ..., sources: _Optional[_Iterable[_Union[GovernedSource, _Mapping]]] = ..., intent: _Optional[str] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class AccessDecision(_message.Message):
    __slots__ = ("ref", "access", "policies", "reason")
    REF_FIELD_NUMBER: _ClassVar[int]
    ACCESS_FIELD_NUMBER: _ClassVar[int]
    POLICIES_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    ref: str
    access: Access
    policies: _containers.RepeatedScalarFieldContainer[str]
    reason: str
    def __init__(self, ref: _Optional[str] = ..., access: _Optional[_Union[Access, str]] = ..., policies: _Optional[_Iterable[str]] = ..., reason: _Optional[str] = ...) -> None: ...

class DecideReply(_message.Message):
    __slots__ = ("decisions", "policy_version", "governance", "depends_on_time", "known", "by_sensitivity")
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    POLICY_VERSION_FIELD_NUMBER: _ClassVar[int]
    GOVERNANCE_FIELD_NUMBER: _ClassVar[int]
    DEPENDS_ON_TIME_FIELD_NUMBER: _ClassVar[int]
    KNOWN_FIELD_NUMBER: _ClassVar[int]
    BY_SENSITIVITY_FIELD_NUMBER: _ClassVar[int]
    decisions: _containers.RepeatedCompositeFieldContainer[AccessDecision]
    policy_version: str
    governance: int
    depends_on_time: bool
    known: _containers.RepeatedScalarFieldContainer[str]
    by_sensitivity: bool
    def __init__(self, decisions: _Optional[_Iterable[_Union[AccessDecision, _Mapping]]] = ..., policy_version: _Optional[str] = ..., governance: _Optional[int] = ..., depends_on_time: bool = ..., known: _Optional[_Iterable[str]] = ..., by_sensitivity: bool = ...) -> None: ...

class RedactRequest(_message.Message):
    __slots__ = ("texts",)
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    texts: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, texts: _Optional[_Iterable[str]] = ...) -> None: ...

class RedactedText(_message.Message):
    __slots__ = ("text",)
    TEXT_FIELD_NUMBER: _ClassVar[int]
    text: str
    def __init__(self, text: _Optional[str] = ...) -> None: ...

class RedactReply(_message.Message):
    __slots__ = ("texts",)
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    texts: _containers.RepeatedCompositeFieldContainer[RedactedText]
    def __init__(self, texts: _Optional[_Iterable[_Union[RedactedText, _Mapping]]] = ...) -> None: ...
