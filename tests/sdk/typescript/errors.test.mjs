/** The errors as the TypeScript SDK raises them, each by one request (F.99, F.105 to F.107, F.110 to F.112, F.116). */

import assert from 'node:assert/strict';
import test from 'node:test';

import Anthropic from '@anthropic-ai/sdk';

import { connect, keys, refusal } from './server.mjs';

/** @typedef {(client: Anthropic) => Promise<unknown>} Ask */

/**
 * A request that is refused, and made once: the SDK retries what it is not told to leave (F.112).
 *
 * @template {import('@anthropic-ai/sdk').APIError} Kind
 * @param {Ask} request
 * @param {abstract new (...args: any) => Kind} kind
 * @param {string} type
 * @param {string} key
 */
async function refusedOnce(request, kind, type, key = keys.writer) {
  const { client, exchanges } = connect(key);
  const error = await refusal(request(client), kind, type);
  assert.deepEqual(
    exchanges.map(({ status }) => status),
    [error.status],
  );
  const [only] = exchanges;
  assert.equal(only?.received.get('request-id'), error.requestID);
  assert.equal(only?.received.get('content-type')?.split(';')[0], 'application/json');
  return { error, received: only?.received };
}

const { client } = connect();
const stores = client.beta.memoryStores;
const store = await stores.create({ name: 'Errors' });
const within = { memory_store_id: store.id };
const memory = await stores.memories.create(store.id, { path: '/notes/todo.md', content: 'milk' });

test('400: what is malformed names its field (F.107, F.108, F.116)', async () => {
  const invalid = async (/** @type {Ask} */ request, /** @type {RegExp} */ names) => {
    const { error } = await refusedOnce(request, Anthropic.BadRequestError, 'invalid_request_error');
    assert.match(error.apiMessage ?? '', names);
  };
  await invalid(({ beta }) => beta.memoryStores.create({ name: '' }), /name/);
  await invalid(({ beta }) => beta.memoryStores.create(/** @type {any} */ ({ name: 'a', colour: 'red' })), /colour/);
  await invalid(({ beta }) => beta.memoryStores.list({ limit: 101 }), /limit/);
  await invalid(({ beta }) => beta.memoryStores.list({ page: 'page_garbage' }), /page/);
  await invalid(({ beta }) => beta.memoryStores.memories.create(store.id, { path: '/../a', content: '' }), /path/);
  await invalid(({ beta }) => beta.memoryStores.memories.create(store.id, { path: '/a', content: null }), /content/);
  await invalid(({ beta }) => beta.memoryStores.memories.list(store.id, { depth: 2 }), /depth/);
  await invalid((client) => client.post('/v1/memory_stores', { body: new TextEncoder().encode('{"name":') }), /JSON/);
});

test('401: a key that nobody was given (F.99, F.116)', async () => {
  await refusedOnce(
    ({ beta }) => beta.memoryStores.list(),
    Anthropic.AuthenticationError,
    'authentication_error',
    keys.unknown,
  );
});

test('403: a key that may only read reads, and writes nothing (F.116)', async () => {
  const refused = (/** @type {Ask} */ request) =>
    refusedOnce(request, Anthropic.PermissionDeniedError, 'permission_error', keys.reader);
  const { beta } = connect(keys.reader).client;
  assert.deepEqual(await beta.memoryStores.retrieve(store.id), store);
  await refused(({ beta }) => beta.memoryStores.create({ name: 'Mine' }));
  await refused(({ beta }) => beta.memoryStores.memories.update(memory.id, { ...within, content: 'mine' }));
  await refused(({ beta }) => beta.memoryStores.memories.delete(memory.id, within));
  await refused(({ beta }) => beta.sessions.create({ agent: 'agent_a', environment_id: 'env_a' }));
});

test('404: an unknown id, one of another store, one to be encoded, an unknown route (F.110, F.111, F.116)', async () => {
  const missing = (/** @type {Ask} */ request) => refusedOnce(request, Anthropic.NotFoundError, 'not_found_error');
  const other = await stores.create({ name: 'Other' });
  await missing(({ beta }) => beta.memoryStores.retrieve('memstore_nobody'));
  await missing(({ beta }) => beta.memoryStores.memories.retrieve(memory.id, { memory_store_id: other.id }));
  await missing(({ beta }) => beta.memoryStores.memories.retrieve('mem_../x?y', within));
  await missing(({ beta }) => beta.memoryStores.memoryVersions.retrieve('memver_nobody', within));
  await missing(({ beta }) => beta.sessions.retrieve('sesn_nobody'));
  await missing((client) => client.get('/v1/nothing'));
});

test('405: another method on a known path (F.110, F.116)', async () => {
  const path = `/v1/memory_stores/${store.id}`;
  const requests = /** @type {Ask[]} */ ([
    (client) => client.patch(path, { body: { name: 'a' } }),
    (client) => client.put(path, { body: { name: 'a' } }),
  ]);
  for (const request of requests) {
    const { received } = await refusedOnce(request, Anthropic.APIError, 'invalid_request_error');
    assert.match(received?.get('allow') ?? '', /POST/);
  }
});

test('409: a path conflict tells who holds which path (F.112, F.116, F.156, F.158, F.159)', async () => {
  const { memories } = client.beta.memoryStores;
  const another = await memories.create(store.id, { path: '/other.md', content: 'other' });
  const held = { conflicting_memory_id: memory.id, conflicting_path: '/notes/todo.md' };
  const requests = /** @type {Ask[]} */ ([
    ({ beta }) => beta.memoryStores.memories.create(store.id, { path: '/notes/todo.md', content: 'milk' }),
    ({ beta }) => beta.memoryStores.memories.create(store.id, { path: '/notes', content: '' }),
    ({ beta }) => beta.memoryStores.memories.create(store.id, { path: '/notes/todo.md/x', content: '' }),
    ({ beta }) => beta.memoryStores.memories.update(another.id, { ...within, path: '/notes/todo.md' }),
  ]);
  for (const request of requests) {
    const { error, received } = await refusedOnce(request, Anthropic.ConflictError, 'memory_path_conflict_error');
    assert.equal(received?.get('x-should-retry'), 'false');
    const { error: told } =
      /** @type {{ error: Anthropic.Beta.MemoryStores.BetaManagedAgentsMemoryPathConflictErrorObject }} */ (
        error.error
      );
    assert.deepEqual(told, { type: 'memory_path_conflict_error', message: told.message, ...held });
  }
});

test('409: a stale precondition of an update, an unexpected hash of a deletion (F.112, F.116, F.171, F.182)', async () => {
  const content_sha256 = '0'.repeat(64);
  const precondition = /** @type {const} */ ({ type: 'content_sha256', content_sha256 });
  const requests = /** @type {Ask[]} */ ([
    ({ beta }) => beta.memoryStores.memories.update(memory.id, { ...within, content: 'x', precondition }),
    ({ beta }) => beta.memoryStores.memories.delete(memory.id, { ...within, expected_content_sha256: content_sha256 }),
  ]);
  for (const request of requests) {
    const { received } = await refusedOnce(request, Anthropic.ConflictError, 'memory_precondition_failed_error');
    assert.equal(received?.get('x-should-retry'), 'false');
  }
  assert.equal((await stores.memories.retrieve(memory.id, within)).content, 'milk');
});
