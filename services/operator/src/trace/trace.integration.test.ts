import { randomBytes, randomUUID } from 'node:crypto';
import { rejectionCodec, TOPICS, toUuidText } from '@playline/contracts';
import { messageRecordOf } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type LogFixture, openLogFixture } from '../test/log-fixture.ts';
import type { FoundTrace } from './find-trace.ts';

const traceIdOf = () => randomBytes(16).toString('hex');
const [stored, unstored, rejected] = [traceIdOf(), traceIdOf(), traceIdOf()];
const receivedAt = Date.now();
const identityKey = randomBytes(16);
const message = messageRecordOf('stored', { traceId: stored, receivedAt, identityKey, userId: 'player-7' });
const rejection = {
  environmentId: 'test-log',
  code: 'INVALID_ENUM' as const,
  field: 'type',
  surface: 'web' as const,
  library: 'playline-unity',
  libraryVersion: '2.0',
  receivedAt,
  traceId: rejected,
  messageIndex: 0,
};

let fixture: LogFixture;
beforeAll(async () => {
  fixture = await openLogFixture();
  const { publish, toMessage, toRecord, startWriter, awaitCaughtUp, stop } = fixture;
  await publish([toMessage(message)]);
  await publish([toRecord(TOPICS.rejections.name, rejectionCodec, rejection)]);
  const writer = await startWriter();
  for (const topic of [TOPICS.messages, TOPICS.rejections]) await awaitCaughtUp(topic.name);
  await stop(writer, 'SIGTERM');
  await publish([toMessage(messageRecordOf('unstored', { traceId: unstored, receivedAt }))]);
});
afterAll(() => fixture.close());

const trace = async (id: string) => {
  const { code, lines } = await fixture.operate('trace', id, '--group', fixture.group);
  return { code, text: lines.join('\n') };
};

it('trace finds the log position, row and identity of a message by its trace id and by its message id', async () => {
  for (const id of [stored, toUuidText(message.messageId)]) {
    const { code, text } = await trace(id);
    expect(code).toBe(0);
    expect(text).toContain(`${toUuidText(message.messageId)}  track stored`);
    expect(text).toContain(`test-log  trace ${stored}`);
    expect(text).toMatch(new RegExp(`log       ${fixture.prefix}${TOPICS.messages.name}/\\d+/\\d+$`, 'm'));
    expect(text).toContain(`events  identity ${identityKey.toString('hex')}`);
    expect(text).not.toContain('player-7');
  }
});

it('trace finds a message that is on the log and not yet stored', async () => {
  const { code, text } = await trace(unstored);
  expect([code, text]).toEqual([0, expect.stringMatching(/^log {9}\S+\/\d+\/\d+ {2}not stored yet/)]);
});

it('trace finds the rejections of a request', async () => {
  const { code, text } = await trace(rejected);
  expect([code, text]).toEqual([
    0,
    expect.stringMatching(/^rejected {4}INVALID_ENUM type .* test-log {2}playline-unity 2\.0 /),
  ]);
});

it('trace reports an unknown id with exit code 1 and a text that is no id with exit code 2', async () => {
  const unknown = await trace(randomUUID());
  expect(unknown).toEqual({ code: 1, text: expect.stringMatching(/^Not found: /) });
  expect((await trace('player-7')).code).toBe(2);
  const { json } = await fixture.operate('trace', stored, '--group', fixture.group, '--json');
  expect((json as FoundTrace).messages).toHaveLength(1);
});
