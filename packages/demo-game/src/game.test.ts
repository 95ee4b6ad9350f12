import { messageRecordCodec, TOPICS } from '@playline/contracts';
import { beforeAll, describe, expect, it } from 'vitest';
import { createDay, DAY_MS, type DemoMessage, isBrokenDay } from './game.ts';
import { type DemoRecord, loadDemoGame } from './load.ts';

const FIRST_DAY = 20_700;
const DAYS = Array.from({ length: 30 }, (_, index) => FIRST_DAY + index);

let days: { day: number; messages: DemoMessage[]; rejected: DemoMessage[] }[] = [];
beforeAll(() => {
  days = DAYS.map((day) => {
    const entries = createDay(day);
    const messages = entries.flatMap((entry) => (entry.kind === 'message' ? [entry.message] : []));
    const rejected = entries.flatMap((entry) => (entry.kind === 'rejection' ? [entry.message] : []));
    return { day, messages, rejected };
  });
});

const playersOf = (messages: readonly DemoMessage[]) => new Set(messages.map(({ anonymousId }) => anonymousId));
const allMessages = () => days.flatMap(({ messages }) => messages);
const withName = (eventName: string) => allMessages().filter((message) => message.eventName === eventName);

it('a day has the same entries each time it is generated, in the order of their times and within the day', () => {
  const entries = createDay(FIRST_DAY);
  expect(createDay(FIRST_DAY)).toEqual(entries);
  const times = entries.map((entry) => (entry.kind === 'consent' ? entry.atMs : entry.message.atMs));
  expect(times).toEqual(times.toSorted((a, b) => a - b));
  expect(times[0]).toBeGreaterThanOrEqual(FIRST_DAY * DAY_MS);
  expect(times.at(-1)).toBeLessThan((FIRST_DAY + 1) * DAY_MS);
});

describe('30 days of the demo game', () => {
  it('have about 2,000 players and no message id twice', () => {
    expect(playersOf(allMessages()).size).toBeGreaterThan(1_800);
    expect(playersOf(allMessages()).size).toBeLessThan(2_200);
    expect(new Set(allMessages().map(({ messageId }) => messageId)).size).toBe(allMessages().length);
  });

  it('have more players on each weekend day than on any Tuesday', () => {
    const playersOn = (weekday: number) =>
      days
        .filter(({ day }) => new Date(day * DAY_MS).getUTCDay() === weekday)
        .map(({ messages }) => playersOf(messages).size);
    expect(playersOn(6).toSorted()[0]).toBeGreaterThan(playersOn(2).toSorted().at(-1)!);
  });

  it('lose players of a cohort day by day, steeply at first', () => {
    const cohort = playersOf(days[0]!.messages.filter(({ properties }) => properties?.entry === 'first'));
    const returning = (day: number) => [...playersOf(days[day]!.messages)].filter((id) => cohort.has(id)).length;
    const week = (first: number) => [0, 1, 2, 3, 4, 5, 6].reduce((sum, day) => sum + returning(first + day), 0);
    expect(returning(1)).toBeLessThan(0.7 * cohort.size);
    expect(week(1)).toBeGreaterThan(week(8));
    expect(week(8)).toBeGreaterThan(week(22));
    expect(week(22)).toBeGreaterThan(0);
  });

  it('have fewer players at each step of the tutorial, and fewer buyers than viewers', () => {
    const reached = [1, 2, 3, 4, 5].map(
      (step) => playersOf(withName('tutorial_step').filter(({ properties }) => properties?.step === step)).size,
    );
    for (const [index, count] of reached.entries()) if (index > 0) expect(count).toBeLessThan(reached[index - 1]!);
    expect(withName('item_purchased').length).toBeGreaterThan(100);
    expect(withName('item_purchased').length).toBeLessThan(withName('item_viewed').length);
  });

  it('have one day on which the new Unity client sends messages without a name, and two client versions', () => {
    const broken = days.filter(({ rejected }) => rejected.length > 0);
    expect(broken.map(({ day }) => day)).toEqual(DAYS.filter(isBrokenDay));
    expect(broken[0]!.rejected.length).toBeGreaterThan(50);
    const [version] = new Set(broken[0]!.rejected.map(({ libraryVersion }) => libraryVersion));
    const versions = new Set(allMessages().map(({ libraryVersion }) => libraryVersion));
    expect(versions.size).toBe(2);
    expect(versions).toContain(version);
  });

  it('have devices on which several players sign in', () => {
    const users = Map.groupBy(
      allMessages().filter(({ userId }) => userId !== ''),
      ({ anonymousId }) => anonymousId,
    );
    const shared = [...users.values()].filter((messages) => new Set(messages.map(({ userId }) => userId)).size > 1);
    expect(shared.length).toBeGreaterThan(20);
  });
});

it('loading publishes each message that was received by the end, with a link for each identify, and no message later', async () => {
  const endAtMs = (FIRST_DAY + 29) * DAY_MS + DAY_MS / 2;
  const published: DemoRecord[] = [];
  const consents: [receivedAt: number, loggedAtMs: number][] = [];
  const load = await loadDemoGame({
    environmentId: 'demo-development',
    endAtMs,
    topicPrefix: 'test.',
    keyOf: (_environment, kind, id) => Buffer.from(`${kind} ${id}`.padEnd(16)).subarray(0, 16),
    schemaIdOf: async () => 7,
    producer: {
      send: (records, done) => {
        published.push(...(records as readonly DemoRecord[]));
        setImmediate(done, null);
      },
      sendForOffset: async () => ({ partition: 0, offset: 1, loggedAtMs: null }),
    },
    consents: {
      apply: async ({ receivedAt, position }) => {
        consents.push([receivedAt, position.loggedAtMs]);
        return 'applied';
      },
    },
  });
  const ofTopic = (name: keyof typeof TOPICS) => published.filter(({ topic }) => topic === `test.${TOPICS[name].name}`);
  const messages = ofTopic('messages').map(({ value }) => messageRecordCodec.decode(value.subarray(5)));
  const expected = allMessages().filter(({ atMs }) => atMs + 400 <= endAtMs);
  expect(messages).toHaveLength(expected.length);
  expect(messages.every(({ receivedAt }) => receivedAt <= endAtMs)).toBe(true);
  expect(ofTopic('identityLinks')).toHaveLength(expected.filter(({ type }) => type === 'identify').length);
  expect(consents).toHaveLength(load.consents);
  expect(consents.every(([receivedAt, loggedAtMs]) => receivedAt === loggedAtMs)).toBe(true);
  expect(load).toMatchObject({ messages: messages.length, rejected: ofTopic('rejections').length, days: 30 });
});
