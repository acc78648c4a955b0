/** What the newest TypeScript SDK and an older one put on the wire, all of it answered (F.98, F.100 to F.102, F.104). */

import assert from 'node:assert/strict';
import test from 'node:test';

import Anthropic from '@anthropic-ai/sdk';
import Older from 'sdk-older';

import { address, keys, noting } from './server.mjs';

/** One of each kind of request of the two resources, and what went over the wire. */
async function tour(/** @type {typeof Anthropic | typeof Older} */ Client) {
  /** @type {import('./server.mjs').Exchange[]} */
  const exchanges = [];
  const client = /** @type {Anthropic} */ (
    new Client({ apiKey: keys.writer, baseURL: address, fetch: noting(exchanges) })
  );
  const { memoryStores: stores, sessions } = client.beta;
  const store = await stores.create({ name: 'Tour' });
  const within = { memory_store_id: store.id };
  const memory = await stores.memories.create(store.id, { path: '/a.md', content: 'one' });
  await stores.memories.update(memory.id, { ...within, content: 'two' });
  await stores.memories.list(store.id, { depth: 1, path_prefix: '/' });
  await stores.memoryVersions.list(store.id, { 'created_at[gte]': memory.created_at });
  await stores.memoryVersions.redact(memory.memory_version_id, within);
  await stores.memories.delete(memory.id, within);
  await stores.list({ include_archived: true, limit: 1 });
  const resources = [{ type: /** @type {const} */ ('memory_store'), memory_store_id: store.id }];
  const session = await sessions.create({ agent: 'agent_a', environment_id: 'env_a', resources });
  await sessions.list({ statuses: ['idle'], memory_store_id: store.id });
  await sessions.delete(session.id);
  await stores.archive(store.id);
  await stores.delete(store.id);
  assert.deepEqual(
    exchanges.filter(({ status }) => status !== 200),
    [],
  );
  return exchanges;
}

/** @param {import('./server.mjs').Exchange[]} exchanges @param {string} name */
const sent = (exchanges, name) => [...new Set(exchanges.map(({ sent }) => sent.get(name)))];

/** @param {import('./server.mjs').Exchange[]} exchanges */
const betas = (exchanges) =>
  new Set(exchanges.map(({ url, sent }) => `${url.pathname.split('/')[2]}: ${sent.get('anthropic-beta')}`));

const BETAS = new Set(['memory_stores: agent-memory-2026-07-22', 'sessions: managed-agents-2026-04-01']);

test('the newest SDK: Authorization, no ?beta=true (F.98, F.101, F.102, F.104)', async () => {
  const exchanges = await tour(Anthropic);
  assert.deepEqual(sent(exchanges, 'authorization'), [`Bearer ${keys.writer}`]);
  assert.deepEqual(sent(exchanges, 'x-api-key'), [null]);
  assert.deepEqual(sent(exchanges, 'anthropic-version'), ['2026-10-21']);
  assert.deepEqual(betas(exchanges), BETAS);
  assert.ok(exchanges.every(({ url }) => !url.searchParams.has('beta')));
});

test('an older SDK: X-Api-Key and ?beta=true (F.98, F.100, F.101, F.102, F.104)', async () => {
  const exchanges = await tour(Older);
  assert.deepEqual(sent(exchanges, 'x-api-key'), [keys.writer]);
  assert.deepEqual(sent(exchanges, 'authorization'), [null]);
  assert.deepEqual(sent(exchanges, 'anthropic-version'), ['2023-06-01']);
  assert.deepEqual(betas(exchanges), BETAS);
  assert.ok(exchanges.every(({ url }) => url.searchParams.get('beta') === 'true'));
});
