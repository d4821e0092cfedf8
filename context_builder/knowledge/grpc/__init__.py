"""Each of the five services has a client adapter and a servicer for gRPC. In: a channel, or an implementation.

``knowledge.proto`` describes them; the ``knowledge_pb2`` modules are made of it by ``python -m scripts.grpc_code``.
"""

import os

# Its handlers of forks print to stderr whenever an engine is started; no child of ours goes on with a channel.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")
