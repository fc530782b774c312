# The roles of seckill: `docker run … seckill api`, `worker`, `keeper`, `migrate`, `doctor`.
FROM python:3.13-slim AS build
WORKDIR /build
COPY requirements.txt ./
RUN python -m venv /opt/seckill \
    && /opt/seckill/bin/pip install --no-cache-dir --require-hashes -r requirements.txt
COPY pyproject.toml README.md LICENSE ./
COPY seckill ./seckill
RUN /opt/seckill/bin/pip install --no-cache-dir --no-deps .

FROM python:3.13-slim
COPY --from=build /opt/seckill /opt/seckill
# Nothing of it is written to, and nobody in it is root.
RUN useradd --system --uid 10001 --home-dir /nonexistent --shell /usr/sbin/nologin seckill
USER 10001
ENV PATH=/opt/seckill/bin:$PATH PYTHONUNBUFFERED=1 SECKILL_LOG_FORMAT=json SECKILL_DATA_DIR=/tmp/seckill
# Told to stop, a role finishes what it has begun: ten seconds at most.
STOPSIGNAL SIGTERM
ENTRYPOINT ["seckill"]
CMD ["--help"]
