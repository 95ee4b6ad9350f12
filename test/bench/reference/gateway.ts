/**
 * The reference: the same endpoint written as the guides of express, zod and kafkajs show it, JSON values, acks=all.
 * It is what the gateway is measured beside, never a part of the product.
 */
import { createHash } from 'node:crypto';
import {
  BATCH_MESSAGES_MAX,
  CONSENT_STATUSES,
  CONTEXT_CODE_POINTS_MAX,
  EVENT_AGE_MAX_MS,
  EVENT_AHEAD_MAX_MS,
  ID_CODE_POINTS_MAX,
  IDENTITY_TYPES,
  MESSAGE_TYPES,
  SURFACES,
} from '@playline/contracts';
import express from 'express';
import { Kafka } from 'kafkajs';
import { z } from 'zod';

const id = z.string().max(ID_CODE_POINTS_MAX).nullish();
const contextString = (name: keyof typeof CONTEXT_CODE_POINTS_MAX) => z.string().max(CONTEXT_CODE_POINTS_MAX[name]);

const contextSchema = z.object({
  library: contextString('library'),
  libraryVersion: contextString('libraryVersion'),
  userAgent: contextString('userAgent').nullish(),
  locale: contextString('locale').nullish(),
  timezone: contextString('timezone').nullish(),
  screen: contextString('screen').nullish(),
  screenDensity: z.number().nullish(),
  pageUrl: contextString('pageUrl').nullish(),
  pagePath: contextString('pagePath').nullish(),
  pageReferrer: contextString('pageReferrer').nullish(),
  pageTitle: contextString('pageTitle').nullish(),
  browserLanguage: contextString('browserLanguage').nullish(),
});

const messageSchema = z
  .object({
    type: z.enum(MESSAGE_TYPES),
    messageId: z.guid(),
    eventTimestamp: z.iso.datetime({ offset: true }),
    anonymousId: id,
    deviceId: id,
    sessionId: id,
    context: contextSchema.nullish(),
    eventName: id,
    properties: z.record(z.string(), z.unknown()).nullish(),
    userId: id,
    identityType: z.enum(IDENTITY_TYPES).nullish(),
    traits: z.record(z.string(), z.unknown()).nullish(),
    fromId: id,
    fromType: z.enum(IDENTITY_TYPES).nullish(),
    toId: id,
    toType: z.enum(IDENTITY_TYPES).nullish(),
    surface: z.enum(SURFACES).nullish(),
    consentLevel: z.enum(CONSENT_STATUSES).nullish(),
    test: z.boolean().nullish(),
  })
  .superRefine((message, context) => {
    const needs = {
      track: ['eventName'],
      identify: ['userId'],
      alias: ['fromId', 'toId'],
      page: [],
      screen: [],
    } as const;
    for (const field of needs[message.type]) {
      if (!message[field]?.trim()) context.addIssue({ code: 'custom', path: [field], message: 'is required' });
    }
  });
/** The time window and the ids of a batch: checks that no schema of one message can make. */
const isInWindow = ({ eventTimestamp }: { eventTimestamp: string }) => {
  const age = Date.now() - Date.parse(eventTimestamp);
  return age <= EVENT_AGE_MAX_MS && age >= -EVENT_AHEAD_MAX_MS;
};
const batchSchema = z.object({ messages: z.array(z.unknown()).min(1).max(BATCH_MESSAGES_MAX) });

const keys = new Set([
  createHash('sha256')
    .update(process.env.BENCH_KEY ?? '')
    .digest('hex'),
]);
const producer = new Kafka({ clientId: 'reference', brokers: (process.env.KAFKA_BROKERS ?? '').split(',') }).producer();
await producer.connect();

const app = express();
app.use(express.json({ limit: '1mb' }));
app.get('/readyz', (_request, response) => response.json({ ready: true }));
app.post('/v1/audience/messages', async (request, response) => {
  const key = request.get('x-service-publishable-key') ?? '';
  if (!keys.has(createHash('sha256').update(key).digest('hex')))
    return response.status(401).json({ code: 'UNAUTHORISED_REQUEST' });
  const batch = batchSchema.safeParse(request.body);
  if (!batch.success) return response.status(400).json({ code: 'VALIDATION_ERROR', details: batch.error.issues });
  const results = batch.data.messages.map((message) => messageSchema.safeParse(message));
  const valid = results.flatMap((result) => (result.success && isInWindow(result.data) ? [result.data] : []));
  const times = new Map<string, number>();
  for (const { messageId } of valid) times.set(messageId.toLowerCase(), (times.get(messageId.toLowerCase()) ?? 0) + 1);
  const accepted = valid.filter(({ messageId }) => times.get(messageId.toLowerCase()) === 1);
  const rejections = results.flatMap((result) => (result.success ? [] : [{ errors: result.error.issues }]));
  await producer.send({
    topic: process.env.BENCH_TOPIC ?? '',
    acks: -1,
    messages: accepted.map((message) => ({
      key: message.userId ?? message.anonymousId ?? null,
      value: JSON.stringify(message),
    })),
  });
  return response.json({
    success: true,
    accepted: accepted.length,
    rejected: results.length - accepted.length,
    rejections,
  });
});
app.listen(Number(process.env.HTTP_PORT), '127.0.0.1');
