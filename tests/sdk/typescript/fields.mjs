/**
 * The fields of every response type, held to the SDK's own types by `npm run check` (F.116).
 *
 * A table that lacks a field of its type, names one too many, or lets a value through that the type does not know, does
 * not compile. `complete` then holds the answers of a real server to the tables.
 */

import assert from 'node:assert/strict';

/** @import Anthropic from '@anthropic-ai/sdk' */

/** Says whether a value is a T: a plain test, marked with the type that it stands for. */
/** @template T @typedef {((value: unknown) => boolean) & { of?: T }} Guard */
/** @template T @typedef {{ [Name in keyof Required<T>]: Guard<T[Name]> }} Fields */

/** @template T @param {(value: any) => boolean} test @returns {Guard<T>} */
const guard = (test) => test;

/** @type {Guard<string>} */
const text = guard((value) => typeof value === 'string');

/** @type {Guard<number>} */
const number = guard((value) => typeof value === 'number');

/** RFC 3339 in UTC, to the microsecond. @type {Guard<string>} */
const time = guard((value) => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/.test(value) && !isNaN(Date.parse(value)));

/** @type {Guard<string>} */
const sha256 = guard((value) => /^[0-9a-f]{64}$/.test(value));

/** @param {string} prefix @returns {Guard<string>} */
const id = (prefix) => guard((value) => RegExp(`^${prefix}_\\w+$`).test(value));

/** @template {string} T @param {...T} values @returns {Guard<T>} */
const one = (...values) => guard((value) => values.includes(value));

/** @template T @param {Guard<T>} inner @returns {Guard<T | null>} */
const nullable = (inner) => guard((value) => value === null || inner(value));

/** What a type calls optional is null on the wire (CONTRACT B.1). @template T @param {Guard<T>} inner @returns {Guard<T>} */
const optional = (inner) => guard((value) => value === null || inner(value));

/** @template T @param {Guard<T>} inner @returns {Guard<T[]>} */
const list = (inner) => guard((value) => Array.isArray(value) && value.every(inner));

/** @type {Guard<Record<string, string>>} */
const strings = guard((value) => Object.getPrototypeOf(value) === Object.prototype && Object.values(value).every(text));

/** What memkernel never answers. @type {Guard<never>} */
const nothing = guard(() => false);

/** @template T @param {Fields<T>} fields @returns {Guard<T>} */
const object = (fields) => guard((value) => complete(fields, value) === value);

/**
 * One of several types, told apart by their `type`.
 *
 * @template {{ type: string }} T
 * @param {{ [Type in T['type']]?: Guard<Extract<T, { type: Type }>> }} kinds
 * @returns {Guard<T>}
 */
const tagged = (kinds) => guard((value) => kinds[/** @type {T['type']} */ (value?.type)]?.(value) ?? false);

/** @type {Fields<Anthropic.Beta.MemoryStores.BetaManagedAgentsAPIActor>} */
const apiActor = { type: one('api_actor'), api_key_id: id('apikey') };
/** @type {Fields<Anthropic.Beta.MemoryStores.BetaManagedAgentsSessionActor>} */
const sessionActor = { type: one('session_actor'), session_id: id('sesn') };
/** @type {Fields<Anthropic.Beta.MemoryStores.BetaManagedAgentsUserActor>} */
const userActor = { type: one('user_actor'), user_id: id('user') };

/** @type {Guard<Anthropic.Beta.MemoryStores.BetaManagedAgentsActor>} */
const actor = tagged({
  api_actor: object(apiActor),
  session_actor: object(sessionActor),
  user_actor: object(userActor),
});

/** @type {Fields<Anthropic.Beta.BetaManagedAgentsMemoryStore>} */
export const memoryStore = {
  id: id('memstore'),
  type: one('memory_store'),
  name: text,
  description: text,
  metadata: strings,
  created_at: time,
  updated_at: time,
  archived_at: nullable(time),
};

/** @type {Fields<Anthropic.Beta.BetaManagedAgentsDeletedMemoryStore>} */
export const deletedMemoryStore = { id: id('memstore'), type: one('memory_store_deleted') };

/** @type {Fields<Anthropic.Beta.MemoryStores.BetaManagedAgentsMemory>} */
export const memory = {
  id: id('mem'),
  type: one('memory'),
  memory_store_id: id('memstore'),
  memory_version_id: id('memver'),
  path: text,
  content: nullable(text),
  content_size_bytes: number,
  content_sha256: sha256,
  created_at: time,
  updated_at: time,
};

/** @type {Fields<Anthropic.Beta.MemoryStores.BetaManagedAgentsMemoryPrefix>} */
export const memoryPrefix = { type: one('memory_prefix'), path: text };

/** @type {Fields<Anthropic.Beta.MemoryStores.BetaManagedAgentsDeletedMemory>} */
export const deletedMemory = { id: id('mem'), type: one('memory_deleted') };

/** @type {Fields<Anthropic.Beta.MemoryStores.BetaManagedAgentsMemoryVersion>} */
export const memoryVersion = {
  id: id('memver'),
  type: one('memory_version'),
  memory_store_id: id('memstore'),
  memory_id: id('mem'),
  operation: one('created', 'modified', 'deleted'),
  path: nullable(text),
  content: nullable(text),
  content_size_bytes: nullable(number),
  content_sha256: nullable(sha256),
  created_at: time,
  created_by: optional(actor),
  redacted_at: nullable(time),
  redacted_by: optional(actor),
};

/** @type {Fields<Anthropic.Beta.BetaManagedAgentsBudgetLimit>} */
const budget = { type: one('limit'), max_list_cost: object({ amount: text, currency: one('USD') }) };

/** @type {Fields<Anthropic.Beta.Sessions.BetaManagedAgentsMemoryStoreResource>} */
export const resource = {
  type: one('memory_store'),
  memory_store_id: id('memstore'),
  access: one('read_write', 'read_only'),
  name: text,
  description: text,
  instructions: nullable(text),
  mount_path: text,
};

/** @type {Fields<Anthropic.Beta.Agents.BetaManagedAgentsModelConfig>} */
const model = { id: text, effort: optional(nothing), inference_geo: optional(nothing), speed: optional(nothing) };

/** @type {Fields<Anthropic.Beta.BetaManagedAgentsSessionAgent>} */
const agent = {
  id: text,
  type: one('agent'),
  name: text,
  version: number,
  description: nullable(text),
  system: nullable(text),
  model: object(model),
  execution_identity: object({ type: one('service_account') }),
  tools: list(nothing),
  skills: list(nothing),
  mcp_servers: list(nothing),
  multiagent: nullable(nothing),
};

/** @type {Fields<Anthropic.Beta.BetaManagedAgentsSessionStats>} */
const stats = { active_seconds: optional(number), duration_seconds: optional(number) };

/** @type {Fields<Anthropic.Beta.BetaManagedAgentsSessionUsage>} */
const usage = {
  active_seconds: optional(number),
  cache_creation: optional(nothing),
  cache_read_input_tokens: optional(number),
  input_tokens: optional(number),
  output_tokens: optional(number),
  list_cost: nullable(nothing),
  server_tool_use: nullable(nothing),
};

/** @type {Fields<Anthropic.Beta.BetaManagedAgentsSession>} */
export const session = {
  id: id('sesn'),
  type: one('session'),
  agent: object(agent),
  environment_id: text,
  title: nullable(text),
  metadata: strings,
  status: one('rescheduling', 'running', 'idle', 'terminated'),
  resources: list(object(resource)),
  vault_ids: list(text),
  budget: nullable(object(budget)),
  outcome_evaluations: list(nothing),
  stats: object(stats),
  usage: object(usage),
  deployment_id: nullable(text),
  created_at: time,
  updated_at: time,
  archived_at: nullable(time),
};

/** @type {Fields<Anthropic.Beta.BetaManagedAgentsDeletedSession>} */
export const deletedSession = { id: id('sesn'), type: one('session_deleted') };

/**
 * Every field's guard holds, and no field is missing or unknown.
 *
 * @template T
 * @param {Fields<T>} fields
 * @param {unknown} value
 * @returns {T}
 */
export function complete(fields, value) {
  assert.ok(typeof value === 'object' && value !== null, `not an object: ${JSON.stringify(value)}`);
  assert.deepEqual(Object.keys(value).sort(), Object.keys(fields).sort());
  for (const [name, holds] of Object.entries(fields)) {
    const found = /** @type {Record<string, unknown>} */ (value)[name];
    assert.ok(/** @type {Guard<unknown>} */ (holds)(found), `${name} is ${JSON.stringify(found)}`);
  }
  return /** @type {T} */ (value);
}
