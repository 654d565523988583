"""The pipeline that documentation and tests share."""

EXAMPLE = b"""\
limits: {process: 4, download: 10, upload: 4, cache: 1}
stages:
  - name: track                      # changes what the element is: only the first stage may
    redefines: refs/{name}
    run: git ls-remote {url} > refs/{name}
    takes: {download: 1}
  - name: pull                       # makes fetch and build unnecessary when it succeeds
    run: cache get {key}
    takes: {download: 1}
    on_ok: skip-to push              # stages with always: true are not skipped
  - name: fetch
    skip_if: test -d sources/{name}
    run: fetch {name}
    takes: {download: 1}
    retries: 2                       # only for errors marked temporary (exit code 75)
  - name: build
    imperative: true                 # what "quit" refers to
    needs: dependencies              # waits until the dependencies have passed this stage
    skip_if: cache has {key}
    run: build {name}
    takes: {process: 1, cache: 1}
    cpus: 2
    mem: 4G
  - name: push
    skip_if: test -z "$PUSH"
    also_failed: true                # failed elements come here too; ROTA_OUTCOME says which
    run: cache put {key}
    takes: {upload: 1}
  - name: clean                      # an exclusive user of the cache
    per: session                     # once, when its condition holds, not per element
    run_if: cache over-quota
    run: cache clean
    takes: {cache: exclusive}
defaults: {url: file:///none}
elements:
  app.bst:  {depends: [base.bst]}
  base.bst: {depends: [], url: file:///base}
"""
