/** Sessions and what they attach by the TypeScript SDK (F.116; CONTRACT C). */

import assert from 'node:assert/strict';
import test from 'node:test';

import Anthropic from '@anthropic-ai/sdk';

import * as fields from './fields.mjs';
import { all, connect, refusal, sandboxSession } from './server.mjs';

const { client } = connect();
const { memoryStores: stores, sessions } = client.beta;

const place = { agent: 'agent_tidy', environment_id: 'env_here' };
const attached = (/** @type {string} */ memory_store_id) => [
  { type: /** @type {const} */ ('memory_store'), memory_store_id },
];
const invalid = (/** @type {Promise<unknown>} */ answer) =>
  refusal(answer, Anthropic.BadRequestError, 'invalid_request_error');

test('create, retrieve and update a session that attaches a store (F.116, F.223 to F.226, F.230)', async () => {
  const store = await stores.create({ name: 'Demo Memory', description: 'For all' });
  const session = await sessions.create({
    ...place,
    title: 'Tidy',
    metadata: { by: 'hand' },
    budget: { type: 'limit', max_list_cost: { amount: '500', currency: 'USD' } },
    vault_ids: ['vlt_a'],
    resources: [{ type: 'memory_store', memory_store_id: store.id, access: 'read_only', instructions: 'Read first.' }],
  });
  fields.complete(fields.session, session);
  assert.deepEqual([session.status, session.title, session.metadata], ['idle', 'Tidy', { by: 'hand' }]);
  assert.deepEqual([session.agent.id, session.environment_id], ['agent_tidy', 'env_here']);
  assert.deepEqual([session.budget?.max_list_cost.amount, session.vault_ids], ['500', ['vlt_a']]);
  assert.deepEqual(session.resources, [
    {
      ...{ type: 'memory_store', memory_store_id: store.id, access: 'read_only', instructions: 'Read first.' },
      ...{ name: 'Demo Memory', description: 'For all', mount_path: '/mnt/memory/demo-memory' },
    },
  ]);
  const changing = { stats: session.stats };
  assert.deepEqual({ ...(await sessions.retrieve(session.id)), ...changing }, session);

  const updated = await sessions.update(session.id, { title: 'Tidied', metadata: { by: null, when: 'now' } });
  fields.complete(fields.session, updated);
  assert.deepEqual([updated.title, updated.metadata], ['Tidied', { when: 'now' }]);
});

test('list the resources of a session and retrieve one; they stay as they are (F.116, F.236, F.237)', async () => {
  const [first, second] = [await stores.create({ name: 'One' }), await stores.create({ name: 'Two' })];
  const resources = [...attached(first.id), ...attached(second.id)];
  const session = await sessions.create({ ...place, resources });
  const found = await all(sessions.resources.list(session.id));
  assert.deepEqual(found, session.resources);
  assert.deepEqual(await all(sessions.resources.list(session.id, { limit: 1 })), found);

  const within = { session_id: session.id };
  const one = fields.complete(fields.resource, await sessions.resources.retrieve(second.id, within));
  assert.deepEqual(one, found[1]);
  assert.deepEqual([one.access, one.instructions, one.description], ['read_write', null, '']);
  await invalid(sessions.resources.delete(second.id, within));
  await invalid(sessions.resources.update(second.id, { ...within, authorization_token: 'token' }));
  const body = /** @type {any} */ (attached(first.id)[0]);
  await invalid(sessions.resources.add(session.id, body));
});

test('list the sessions of a store, in both orders and both directions (F.116, F.238)', async () => {
  const store = await stores.create({ name: 'Shared' });
  /** @type {(string | null)[]} */
  const made = [];
  for (const title of ['a', 'b', 'c', 'd', 'e'])
    made.push((await sessions.create({ ...place, title, resources: attached(store.id) })).title);
  await sessions.create(place);

  const mine = { memory_store_id: store.id, limit: 2 };
  for (const order of /** @type {const} */ (['asc', 'desc'])) {
    const expected = order === 'asc' ? made : made.toReversed();
    const found = await all(sessions.list({ ...mine, order }));
    found.forEach((session) => fields.complete(fields.session, session));
    assert.deepEqual(
      found.map(({ title }) => title),
      expected,
    );

    const first = await sessions.list({ ...mine, order });
    assert.equal(first.prev_page, null);
    const second = await first.getNextPage();
    assert.deepEqual(
      second.data.map(({ title }) => title),
      expected.slice(2, 4),
    );
    assert.ok(second.prev_page);
    const back = await sessions.list({ ...mine, order, page: second.prev_page });
    assert.deepEqual(
      back.data.map(({ title }) => title),
      expected.slice(0, 2),
    );
  }
  assert.equal((await all(sessions.list({ ...mine, statuses: ['idle', 'running'] }))).length, 5);
  assert.equal((await all(sessions.list({ ...mine, statuses: ['terminated'] }))).length, 0);
});

test('archive and delete a session; its store stays and is then deleted (F.116, F.135, F.239)', async () => {
  const store = await stores.create({ name: 'Kept' });
  const session = await sessions.create({ ...place, resources: attached(store.id) });
  await invalid(stores.delete(store.id));

  const archived = fields.complete(fields.session, await sessions.archive(session.id));
  assert.ok(archived.archived_at);
  const listed = async (/** @type {boolean} */ include_archived) =>
    (await all(sessions.list({ memory_store_id: store.id, include_archived }))).map(({ id }) => id);
  assert.deepEqual(await listed(false), []);
  assert.deepEqual(await listed(true), [session.id]);

  const deleted = fields.complete(fields.deletedSession, await sessions.delete(session.id));
  assert.deepEqual(deleted, { id: session.id, type: 'session_deleted' });
  await refusal(sessions.retrieve(session.id), Anthropic.NotFoundError, 'not_found_error');
  assert.equal((await stores.retrieve(store.id)).id, store.id);
  await stores.delete(store.id);
});

test('what cannot be attached makes no session (F.224, F.228, F.229)', async () => {
  const store = await stores.create({ name: 'Once' });
  await invalid(sessions.create({ ...place, resources: attached('memstore_nobody') }));
  await invalid(sessions.create({ ...place, resources: [...attached(store.id), ...attached(store.id)] }));
  const access = /** @type {any} */ ('write_only');
  await invalid(
    sessions.create({ ...place, resources: [{ type: 'memory_store', memory_store_id: store.id, access }] }),
  );
  await stores.archive(store.id);
  await invalid(sessions.create({ ...place, resources: attached(store.id) }));
  assert.deepEqual((await sessions.list({ memory_store_id: store.id })).data, []);
});

test('a session that a sandbox began, and what was written in it, decode (F.116, F.206, F.214)', async () => {
  const session = fields.complete(fields.session, await sessions.retrieve(sandboxSession));
  const [mounted] = session.resources;
  assert.ok(mounted?.type === 'memory_store');
  assert.ok(
    (await all(sessions.list({ memory_store_id: mounted.memory_store_id }))).some(({ id }) => id === session.id),
  );
  const versions = await all(stores.memoryVersions.list(mounted.memory_store_id));
  versions.forEach((version) => fields.complete(fields.memoryVersion, version));
  assert.deepEqual(
    versions.map(({ operation, created_by }) => [operation, created_by]),
    [
      ['modified', { type: 'session_actor', session_id: session.id }],
      ['created', { type: 'user_actor', user_id: 'user_ada' }],
    ],
  );
  const its = await all(stores.memoryVersions.list(mounted.memory_store_id, { session_id: session.id }));
  assert.deepEqual(its, versions.slice(0, 1));
});
