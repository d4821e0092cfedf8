"""The five services over gRPC: a client adapter and a servicer of each. In: a channel, or an implementation.

``knowledge.proto`` describes them; the ``knowledge_pb2`` modules are made of it by ``python -m scripts.grpc_code``.
"""
