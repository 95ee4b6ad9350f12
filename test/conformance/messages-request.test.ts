// Contract, tables "MessagesRequest", "MessagesResponse", "MessageRejection", "RejectionError"; ingest.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Client, errorsOf, expectAccepted, expectEnvelope, message, track } from './client.ts';
import { type ConformanceGateway, START_MAX_MS, startGateway } from './gateway.ts';

let client: Client & ConformanceGateway;
beforeAll(async () => {
  client = await startGateway();
}, START_MAX_MS);
afterAll(() => client.close());

const many = (count: number) => Array.from({ length: count }, () => track());

it.each([1, 2, 100])('a request with a batch of %i is accepted', async (count) => {
  expectAccepted(await client.send(...many(count)), count);
});

it('a request with an empty batch: 400 VALIDATION_ERROR envelope', async () => {
  expectEnvelope(await client.send(), 400, 'VALIDATION_ERROR');
});

it('a request with 101 messages: 400 VALIDATION_ERROR envelope that names the limit', async () => {
  const answer = await client.send(...many(101));
  expectEnvelope(answer, 400, 'VALIDATION_ERROR');
  expect(JSON.stringify(answer.body.details)).toContain('100');
});

it.each([{}, { messages: null }, { messages: 'x' }, { messages: {} }, [], null, 'text', 7])(
  'a request with a body without a messages array (%j): 400 VALIDATION_ERROR envelope',
  async (body) => {
    expectEnvelope(await client.post(JSON.stringify(body)), 400, 'VALIDATION_ERROR');
  },
);

it('a request with other members of the request are ignored', async () => {
  expectAccepted(await client.post({ sentAt: 'now', messages: [track()] }));
});

it('a batch with one bad message among 100: status 200, 99 accepted, 1 rejected, success', async () => {
  const bad = track({ surface: 'phone' });
  const answer = await client.send(...many(50), bad, ...many(49));
  expect(answer.status).toBe(200);
  expect(answer.body).toMatchObject({ success: true, accepted: 99, rejected: 1 });
  expect(answer.body.rejections).toHaveLength(1);
  expect(answer.body.rejections[0].messageId).toBe(bad.messageId);
  expect(errorsOf(answer)).toEqual(['INVALID_ENUM surface']);
});

it('a batch with all bad: status 400 with the MessagesResponse, accepted 0, success false', async () => {
  const answer = await client.send(track({ test: 'yes' }), track({ surface: 'phone' }));
  expect(answer.status).toBe(400);
  expect(answer.body).toMatchObject({ success: false, accepted: 0, rejected: 2 });
  expect(Object.keys(answer.body).sort()).toEqual(['accepted', 'rejected', 'rejections', 'success']);
  expect(answer.body.rejections).toHaveLength(2);
});

it('a batch with every error of a message is listed', async () => {
  const answer = await client.send(track({ eventName: null, surface: 'phone', test: 1, context: { library: 'a' } }));
  expect(errorsOf(answer)).toEqual([
    'INVALID_ENUM surface',
    'INVALID_FORMAT test',
    'MISSING_REQUIRED_FIELD context.libraryVersion',
    'MISSING_REQUIRED_FIELD eventName',
  ]);
});

const messageId = randomUUID();

it('a messageId twice in one batch rejects all copies: each counted, one entry, DUPLICATE_MESSAGE_ID on messageId', async () => {
  const answer = await client.send(track({ messageId }), track(), track({ messageId }), track({ messageId }));
  expect(answer.status).toBe(200);
  expect(answer.body).toMatchObject({ success: true, accepted: 1, rejected: 3 });
  expect(answer.body.rejections).toHaveLength(1);
  expect(errorsOf(answer)).toEqual(['DUPLICATE_MESSAGE_ID messageId']);
});

it('a messageId twice in one batch is compared case-insensitively and echoes the first spelling', async () => {
  const answer = await client.send(track({ messageId: messageId.toUpperCase() }), track({ messageId }));
  expect(answer.status).toBe(400);
  expect(answer.body).toMatchObject({ accepted: 0, rejected: 2 });
  expect(answer.body.rejections).toHaveLength(1);
  expect(answer.body.rejections[0].messageId).toBe(messageId.toUpperCase());
});

it('a messageId twice in one batch lists the other errors of the copies too', async () => {
  const answer = await client.send(track({ messageId, surface: 'phone' }), track({ messageId, test: 1 }));
  expect(errorsOf(answer)).toEqual(['DUPLICATE_MESSAGE_ID messageId', 'INVALID_ENUM surface', 'INVALID_FORMAT test']);
});

it('a messageId twice in one batch malformed twins are duplicates too', async () => {
  const answer = await client.send(track({ messageId: 'twin' }), track({ messageId: 'TWIN' }));
  expect(answer.body.rejections).toHaveLength(1);
  expect(errorsOf(answer)).toContain('DUPLICATE_MESSAGE_ID messageId');
  expect(errorsOf(answer)).toContain('INVALID_FORMAT messageId');
});

it('a messageId twice in one batch absent ids of several messages make one entry with the errors merged, and no DUPLICATE', async () => {
  const answer = await client.send(track({ messageId: undefined }), track({ messageId: null, surface: 'phone' }), 7);
  expect(answer.body).toMatchObject({ accepted: 0, rejected: 3 });
  expect(answer.body.rejections).toHaveLength(1);
  expect(answer.body.rejections[0].messageId).toBe('');
  const errors = new Set(errorsOf(answer));
  expect([...errors].sort()).toEqual([
    'INVALID_ENUM surface',
    'INVALID_FORMAT message',
    'MISSING_REQUIRED_FIELD messageId',
  ]);
});

it('a messageId twice in one batch non-string ids of several messages: those of one text make one entry with the errors merged, and no DUPLICATE', async () => {
  const answer = await client.send(track({ messageId: 42 }), track({ messageId: 42, surface: 'phone' }));
  expect(answer.body).toMatchObject({ accepted: 0, rejected: 2 });
  expect(answer.body.rejections).toHaveLength(1);
  expect(errorsOf(answer)).toEqual(['INVALID_ENUM surface', 'INVALID_FORMAT messageId']);
});

it('a messageId twice in one batch again in a later batch: accepted again', async () => {
  const sent = track();
  expectAccepted(await client.send(sent));
  expectAccepted(await client.send(sent, message('page')), 2);
});
