/** Memory versions by the TypeScript SDK (F.116; CONTRACT B.10, B.11). */

import assert from 'node:assert/strict';
import test from 'node:test';

import Anthropic from '@anthropic-ai/sdk';

import * as fields from './fields.mjs';
import { all, connect, keys, refusal } from './server.mjs';

const { client } = connect();
const { memories, memoryVersions: versions } = client.beta.memoryStores;

/** A lineage of four versions, its third one by another key, beside another memory. */
async function history() {
  const store = (await client.beta.memoryStores.create({ name: 'History' })).id;
  const memory = await memories.create(store, { path: '/a.md', content: 'one' });
  await memories.update(memory.id, { memory_store_id: store, content: 'two' });
  const second = connect(keys.second).client.beta.memoryStores.memories;
  await second.update(memory.id, { memory_store_id: store, path: '/b.md' });
  await memories.delete(memory.id, { memory_store_id: store });
  const other = await memories.create(store, { path: '/other.md', content: 'other' });
  return { store, memory, other };
}

test('a lineage is listed newest first and each version retrieved (F.116, F.201 to F.204, F.208, F.209)', async () => {
  const { store, memory } = await history();
  const lineage = await all(versions.list(store, { memory_id: memory.id, limit: 1 }));
  lineage.forEach((version) => fields.complete(fields.memoryVersion, version));
  assert.deepEqual(
    lineage.map(({ operation, path, content }) => [operation, path, content]),
    [
      ['deleted', '/b.md', null],
      ['modified', '/b.md', null],
      ['modified', '/a.md', null],
      ['created', '/a.md', null],
    ],
  );
  const whole = await Promise.all(lineage.map(({ id }) => versions.retrieve(id, { memory_store_id: store })));
  whole.forEach((version) => fields.complete(fields.memoryVersion, version));
  assert.deepEqual(
    whole.map(({ content }) => content),
    [null, 'two', 'two', 'one'],
  );
  const listed = (await versions.list(store, { memory_id: memory.id, view: 'full' })).data;
  assert.deepEqual(listed, whole);
  const [deleted] = lineage;
  assert.deepEqual([deleted?.content_sha256, deleted?.content_size_bytes], [null, null]);
});

test('every filter of the list selects, and filters combine (F.116, F.205 to F.207, F.212, F.213)', async () => {
  const { store, memory, other } = await history();
  const everything = await all(versions.list(store));
  assert.equal(everything.length, 5);
  const actors = everything.map(({ created_by }) => {
    assert.equal(created_by?.type, 'api_actor');
    return created_by.api_key_id;
  });
  const [first, , second] = actors;
  assert.ok(first && second && first !== second);
  assert.deepEqual(actors, [first, first, second, first, first]);
  assert.ok(!JSON.stringify(everything).includes(keys.writer), 'no version tells a key');

  const ids = async (/** @type {Anthropic.Beta.MemoryStores.MemoryVersionListParams} */ filters) =>
    (await all(versions.list(store, { ...filters, limit: 2 }))).map(({ id }) =>
      everything.findIndex((version) => version.id === id),
    );
  const at = (/** @type {number} */ index) => /** @type {string} */ (everything[index]?.created_at);
  assert.deepEqual(await ids({ memory_id: memory.id }), [1, 2, 3, 4]);
  assert.deepEqual(await ids({ memory_id: other.id }), [0]);
  assert.deepEqual(await ids({ operation: 'created' }), [0, 4]);
  assert.deepEqual(await ids({ operation: 'deleted' }), [1]);
  assert.deepEqual(await ids({ api_key_id: second }), [2]);
  assert.deepEqual(await ids({ api_key_id: first, operation: 'modified' }), [3]);
  assert.deepEqual(await ids({ session_id: 'sesn_nobody' }), []);
  assert.deepEqual(await ids({ service_account_id: 'svac_nobody' }), []);
  assert.deepEqual(await ids({ 'created_at[gte]': at(3), 'created_at[lte]': at(1) }), [1, 2, 3]);
});

test('a version is redacted, twice the same; the head of a memory is not (F.116, F.215 to F.219, F.221)', async () => {
  const { store, other } = await history();
  const head = { memory_store_id: store };
  await refusal(versions.redact(other.memory_version_id, head), Anthropic.BadRequestError, 'invalid_request_error');
  await memories.update(other.id, { memory_store_id: store, content: 'newer' });

  const before = await versions.retrieve(other.memory_version_id, head);
  const redacted = fields.complete(fields.memoryVersion, await versions.redact(other.memory_version_id, head));
  assert.ok(redacted.redacted_at);
  assert.deepEqual(redacted, {
    ...before,
    ...{ path: null, content: null, content_sha256: null, content_size_bytes: null },
    ...{ redacted_at: redacted.redacted_at, redacted_by: before.created_by },
  });
  assert.deepEqual(await versions.redact(other.memory_version_id, head), redacted);
  assert.deepEqual(await versions.retrieve(other.memory_version_id, head), redacted);
  assert.equal((await memories.retrieve(other.id, { memory_store_id: store })).content, 'newer');
});
