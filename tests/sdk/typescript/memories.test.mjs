/** Memories by the TypeScript SDK (F.116; CONTRACT B.5 to B.9). */

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import test from 'node:test';

import Anthropic from '@anthropic-ai/sdk';

import * as fields from './fields.mjs';
import { all, connect, refusal } from './server.mjs';

const { client, exchanges } = connect();
const { memories } = client.beta.memoryStores;

const newStore = async () => (await client.beta.memoryStores.create({ name: 'Notes' })).id;
const sha256 = (/** @type {string} */ content) => createHash('sha256').update(content).digest('hex');

/** @param {string} memory_store_id @param {string} content */
const holding = (memory_store_id, content) => ({
  memory_store_id,
  precondition: /** @type {const} */ ({ type: 'content_sha256', content_sha256: sha256(content) }),
});

test('create and retrieve a memory in both views (F.116, F.138 to F.142)', async () => {
  const store = await newStore();
  const content = 'Zürich, 東京 \u0000 \u{1F680}\r\n';
  const made = fields.complete(fields.memory, await memories.create(store, { path: '/units.md', content }));
  assert.equal(made.content, null);
  assert.equal(made.content_sha256, sha256(content));
  assert.equal(made.content_size_bytes, Buffer.byteLength(content));

  const full = await memories.retrieve(made.id, { memory_store_id: store });
  assert.deepEqual(fields.complete(fields.memory, full), { ...made, content });
  assert.deepEqual(await memories.retrieve(made.id, { memory_store_id: store, view: 'basic' }), made);
  const echoed = await memories.create(store, { path: '/empty.md', content: '', view: 'full' });
  assert.equal(fields.complete(fields.memory, echoed).content, '');
});

test('update with a precondition, rename, then delete with the expected hash (F.116, F.167 to F.171, F.181, F.182)', async () => {
  const store = await newStore();
  const first = await memories.create(store, { path: '/a.md', content: 'one' });
  const second = await memories.update(first.id, { ...holding(store, 'one'), content: 'two', view: 'full' });
  assert.equal(fields.complete(fields.memory, second).content, 'two');
  assert.notEqual(second.memory_version_id, first.memory_version_id);
  await refusal(
    memories.update(first.id, { ...holding(store, 'one'), content: 'three' }),
    Anthropic.ConflictError,
    'memory_precondition_failed_error',
  );

  const renamed = await memories.update(first.id, { memory_store_id: store, path: '/b/c.md' });
  assert.deepEqual([renamed.id, renamed.path, renamed.content_sha256], [first.id, '/b/c.md', sha256('two')]);
  const unchanged = await memories.update(first.id, { memory_store_id: store, content: null, path: null });
  assert.deepEqual(unchanged, renamed);

  const gone = { memory_store_id: store, expected_content_sha256: sha256('two') };
  await refusal(
    memories.delete(first.id, { ...gone, expected_content_sha256: sha256('one') }),
    Anthropic.ConflictError,
    'memory_precondition_failed_error',
  );
  assert.deepEqual(fields.complete(fields.deletedMemory, await memories.delete(first.id, gone)), {
    id: first.id,
    type: 'memory_deleted',
  });
  await refusal(memories.delete(first.id, gone), Anthropic.NotFoundError, 'not_found_error');
});

test('list one level, below a prefix, basic and full (F.116, F.184 to F.193)', async () => {
  const store = await newStore();
  const paths = ['/a.md', '/notes/deep/x.md', '/notes/todo.md', '/notes-archive/old.md', '/z.md'];
  for (const path of paths) await memories.create(store, { path, content: path });
  const told = async (/** @type {Anthropic.Beta.MemoryStores.MemoryListParams} */ params) => {
    const entries = await all(memories.list(store, { limit: 1, ...params }));
    return entries.map((entry) => {
      if (entry.type === 'memory_prefix') return fields.complete(fields.memoryPrefix, entry).path;
      return [fields.complete(fields.memory, entry).path, entry.content];
    });
  };
  const basic = (/** @type {string[]} */ ...paths) => paths.map((path) => [path, null]);
  const archive = '/notes-archive/';

  assert.deepEqual(
    await told({}),
    basic('/a.md', '/notes-archive/old.md', '/notes/deep/x.md', '/notes/todo.md', '/z.md'),
  );
  assert.deepEqual(await told({ depth: 1 }), [['/a.md', null], archive, '/notes/', ['/z.md', null]]);
  assert.deepEqual(await told({ depth: 1, path_prefix: '/notes/' }), ['/notes/deep/', ['/notes/todo.md', null]]);
  assert.deepEqual(await told({ path_prefix: archive, view: 'full' }), [
    ['/notes-archive/old.md', '/notes-archive/old.md'],
  ]);
});

test('250 memories page by themselves; a full page holds 20 (F.116, F.185, F.195)', async () => {
  const store = await newStore();
  const paths = Array.from({ length: 250 }, (_, number) => `/${String(number).padStart(3, '0')}.md`);
  for (const path of paths) await memories.create(store, { path, content: path });

  const before = exchanges.length;
  const found = await all(memories.list(store, { limit: 100 }));
  assert.equal(exchanges.length - before, 3);
  assert.deepEqual(
    found.map(({ path }) => path),
    paths,
  );
  assert.equal(new Set(found.map((entry) => fields.complete(fields.memory, entry).id)).size, 250);

  assert.equal((await memories.list(store)).data.length, 20);
  const full = await memories.list(store, { limit: 100, view: 'full' });
  assert.deepEqual(
    full.data.map((entry) => entry.type === 'memory' && entry.content),
    paths.slice(0, 20),
  );
  assert.ok(full.hasNextPage());
});
