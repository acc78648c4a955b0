/** The server that these tests speak to, official clients for it, and what went over the wire. */

import assert from 'node:assert/strict';

import Anthropic from '@anthropic-ai/sdk';

/** @param {string} name */
function given(name) {
  const value = process.env[name];
  assert.ok(value, `${name} is not set: tests/sdk/test_typescript.py starts the server and these tests`);
  return value;
}

export const address = given('MEMORY_SERVER');

/** A session that a sandbox began: its one store holds a memory that a person wrote and the session edited. */
export const sandboxSession = given('MEMORY_SANDBOX_SESSION');

/** Keys of one workspace: two that may write, one that may only read; and one that the server does not know. */
export const keys = {
  writer: given('MEMORY_KEY'),
  second: given('MEMORY_SECOND_KEY'),
  reader: given('MEMORY_READ_ONLY_KEY'),
  unknown: 'mk_nobody-was-given-this-one',
};

/** @typedef {{ method: string, url: URL, sent: Headers, status: number, received: Headers }} Exchange */

/**
 * A `fetch` that notes each exchange.
 *
 * @param {Exchange[]} exchanges
 * @returns {(input: string | URL | Request, init?: RequestInit) => Promise<Response>}
 */
export function noting(exchanges) {
  return async (input, init) => {
    const request = new Request(input, init);
    const response = await fetch(input, init);
    const { method, headers: sent } = request;
    exchanges.push({ method, url: new URL(request.url), sent, status: response.status, received: response.headers });
    return response;
  };
}

/**
 * A client of the newest SDK with its default retries, and the exchanges it will have.
 *
 * @param {string} apiKey
 */
export function connect(apiKey = keys.writer) {
  /** @type {Exchange[]} */
  const exchanges = [];
  return { client: new Anthropic({ apiKey, baseURL: address, fetch: noting(exchanges) }), exchanges };
}

/**
 * The SDK's error of a request that must be refused: its class, status, type and request id are checked.
 *
 * @template {import('@anthropic-ai/sdk').APIError} Kind
 * @param {Promise<unknown>} answer
 * @param {abstract new (...args: any) => Kind} kind
 * @param {string} type
 * @returns {Promise<Kind>}
 */
export async function refusal(answer, kind, type) {
  const error = await answer.then(
    (value) => assert.fail(`not refused: ${JSON.stringify(value)}`),
    (/** @type {unknown} */ error) => error,
  );
  assert.ok(error instanceof kind, String(error));
  assert.equal(error.type, type, String(error));
  assert.ok(error.apiMessage, 'the error has a message');
  const body = /** @type {{ type: string, request_id: string }} */ (error.error);
  assert.equal(body.type, 'error');
  assert.match(body.request_id, /^req_\w+$/);
  assert.equal(error.requestID, body.request_id);
  return error;
}

/**
 * All that an auto-paged list yields.
 *
 * @template T
 * @param {AsyncIterable<T>} pages
 * @returns {Promise<T[]>}
 */
export async function all(pages) {
  const found = [];
  for await (const entry of pages) found.push(entry);
  return found;
}
