# The roles of seckill: `docker run … seckill api`, `worker`, `keeper`, `migrate`, `doctor`.
# `make pin-images` says which digest to build from: --build-arg PYTHON_IMAGE=python:3.13-slim@sha256:…
ARG PYTHON_IMAGE=python:3.13-slim
# One that has a C compiler, such as python:3.13, makes claims cheaper: docs/speed.md.
ARG BUILD_BASE=${PYTHON_IMAGE}
FROM ${BUILD_BASE} AS build
WORKDIR /build
COPY requirements-production.txt requirements-build.txt requirements-docs.txt ./
# Nothing is fetched without a hash, and what builds the package does not come along.
RUN python -m venv /opt/seckill \
    && /opt/seckill/bin/pip install --no-cache-dir --require-hashes -r requirements-production.txt \
    && python -m venv /opt/build \
    && /opt/build/bin/pip install --no-cache-dir --require-hashes -r requirements-build.txt -r requirements-docs.txt
COPY pyproject.toml README.md LICENSE ./
COPY seckill ./seckill
COPY mkdocs.yml ./
COPY docs ./docs
COPY scripts/site_links.py ./scripts/
RUN NO_MKDOCS_2_WARNING=1 /opt/build/bin/mkdocs build --quiet --strict \
    && /opt/build/bin/pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels . \
    && /opt/seckill/bin/pip install --no-cache-dir --no-deps --no-index /wheels/*.whl \
    && /opt/seckill/bin/python -m seckill.native

FROM ${PYTHON_IMAGE}
COPY --from=build /opt/seckill /opt/seckill
# Nothing of it is written to, and nobody in it is root.
RUN useradd --system --uid 10001 --home-dir /nonexistent --shell /usr/sbin/nologin seckill
USER 10001
ENV PATH=/opt/seckill/bin:$PATH PYTHONUNBUFFERED=1 SECKILL_LOG_FORMAT=json SECKILL_DATA_DIR=/tmp/seckill
# Told to stop, a role finishes what it has begun: ten seconds at most.
STOPSIGNAL SIGTERM
ENTRYPOINT ["seckill"]
CMD ["--help"]
