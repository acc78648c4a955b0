/** Memory stores by the TypeScript SDK (F.116; CONTRACT B.3, B.4). */

import assert from 'node:assert/strict';
import test from 'node:test';

import Anthropic from '@anthropic-ai/sdk';

import * as fields from './fields.mjs';
import { all, connect, refusal } from './server.mjs';

const { client, exchanges } = connect();
const stores = client.beta.memoryStores;

test('create, retrieve and update a store: every field decodes (F.116, F.117, F.122, F.125)', async () => {
  const store = fields.complete(fields.memoryStore, await stores.create({ name: 'Team notes' }));
  assert.deepEqual(
    { ...store, id: null, created_at: null, updated_at: null },
    {
      ...{ id: null, type: 'memory_store', name: 'Team notes', description: '', metadata: {} },
      ...{ created_at: null, updated_at: null, archived_at: null },
    },
  );
  assert.equal(store.created_at, store.updated_at);
  assert.deepEqual(await stores.retrieve(store.id), store);

  const described = await stores.update(store.id, {
    description: 'House rules',
    metadata: { team: 'red', place: 'hall' },
  });
  fields.complete(fields.memoryStore, described);
  assert.ok(described.updated_at > store.updated_at);
  const patched = await stores.update(store.id, {
    name: null,
    description: null,
    metadata: { place: null, floor: '2' },
  });
  assert.deepEqual(patched.metadata, { team: 'red', floor: '2' });
  assert.equal(patched.name, 'Team notes');
  assert.equal(patched.description, '');
});

test('list the stores with auto-pagination, by time and with archived ones (F.116, F.128 to F.130)', async () => {
  const made = [];
  for (const name of ['a', 'b', 'c', 'd', 'e']) made.unshift(await stores.create({ name, metadata: { of: 'list' } }));
  const [newest, , archived, , oldest] = made;
  assert.ok(newest && archived && oldest);
  const within = { 'created_at[gte]': oldest.created_at, 'created_at[lte]': newest.created_at };
  const mine = (/** @type {Anthropic.Beta.BetaManagedAgentsMemoryStore[]} */ found) =>
    found.filter(({ metadata }) => metadata.of === 'list');

  const before = exchanges.length;
  const found = await all(stores.list({ ...within, limit: 2 }));
  found.forEach((store) => fields.complete(fields.memoryStore, store));
  assert.deepEqual(mine(found), made);
  assert.ok(exchanges.length - before >= 3, 'five stores in pages of two');

  await stores.archive(archived.id);
  const names = async (/** @type {boolean} */ include_archived) =>
    mine(await all(stores.list({ ...within, include_archived, limit: 2 }))).map(({ name }) => name);
  assert.deepEqual(await names(false), ['e', 'd', 'b', 'a']);
  assert.deepEqual(await names(true), ['e', 'd', 'c', 'b', 'a']);
});

test('archive a store twice, then delete it (F.116, F.132 to F.134, F.136)', async () => {
  const store = await stores.create({ name: 'Passing' });
  const memory = await stores.memories.create(store.id, { path: '/a.md', content: 'a' });
  const archived = fields.complete(fields.memoryStore, await stores.archive(store.id));
  assert.ok(archived.archived_at);
  assert.deepEqual(await stores.archive(store.id), archived);

  const invalid = (/** @type {Promise<unknown>} */ answer) =>
    refusal(answer, Anthropic.BadRequestError, 'invalid_request_error');
  await invalid(stores.update(store.id, { name: 'Other' }));
  await invalid(stores.memories.create(store.id, { path: '/b.md', content: 'b' }));
  await invalid(stores.memories.update(memory.id, { memory_store_id: store.id }));

  const deleted = fields.complete(fields.deletedMemoryStore, await stores.delete(store.id));
  assert.equal(deleted.id, store.id);
  const missing = (/** @type {Promise<unknown>} */ answer) =>
    refusal(answer, Anthropic.NotFoundError, 'not_found_error');
  await missing(stores.retrieve(store.id));
  await missing(stores.memories.retrieve(memory.id, { memory_store_id: store.id }));
  await missing(stores.memoryVersions.retrieve(memory.memory_version_id, { memory_store_id: store.id }));
});
