#!/bin/sh
# GitHub's runner calls this before each job (ACTIONS_RUNNER_HOOK_JOB_STARTED). A sick GPU fails the job here, before
# its first step, with a note by which `again` plans the job anew; the service then sees the same and takes no other job.
# CUDA_VISIBLE_DEVICES: where a machine has several GPUs, the runner's own.
cd /usr/local/lib/tilestack-runner || exit
python3 -m ci.runner health --folder /var/lib/tilestack-runner --gpu "${CUDA_VISIBLE_DEVICES-}" && exit
code=$?
[ "$code" != 7 ] || echo "::error::this GPU is not fit for a job: $(hostname) ${CUDA_VISIBLE_DEVICES-}"
exit "$code"
