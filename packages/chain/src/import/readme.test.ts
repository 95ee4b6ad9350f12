import { readFileSync } from 'node:fs';
import { ACTIVITY_TYPES } from '@playline/contracts';
import { expect, it } from 'vitest';
import { toActivityRow, toTokenRow } from '../rows.ts';
import { toActivityJson, toTokenJson } from '../wire.ts';
import { createParseActivity, createParseToken } from './parse-activity.ts';

const CHAIN = { name: 'demo-chain', id: 'eip155:31337' };
const context = { chain: CHAIN.name, traceId: 'ab'.repeat(16) };
const version = { updatedAt: 0, partition: 0, offset: 0, loggedAtMs: 0 };

const [activities = [], tokens = []] = readFileSync(new URL('README.md', import.meta.url), 'utf8')
  .split('## Tokens')
  .map((part) => [...part.matchAll(/^```json\n(.*)\n```$/gm)].map(([, line]) => JSON.parse(line ?? '')));

it('the README contains one example per activity type and one example of a token', () => {
  expect(activities.map(({ type }) => type).toSorted()).toEqual([...ACTIVITY_TYPES].toSorted());
  expect(tokens).toHaveLength(1);
});

it.each(activities)('the import accepts the README example of a $type, and the API returns it unchanged', (line) => {
  const parsed = createParseActivity(context)(line);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  const { chain, updated_at, indexed_at, ...shown } = toActivityJson(toActivityRow(parsed.record, version), CHAIN);
  const { chain: name, indexed_at: indexedAt, ...members } = line;
  expect(shown).toEqual(members);
  expect(name).toBe(chain.name);
  expect(Date.parse(indexed_at)).toBe(Date.parse(indexedAt));
});

it.each(tokens)('the import accepts the README example of token $symbol, and the API returns it unchanged', (line) => {
  const parsed = createParseToken(context)(line);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  const { updated_at, ...shown } = toTokenJson(toTokenRow(parsed.record, version), CHAIN);
  expect(shown).toEqual({ ...line, chain: CHAIN });
});

it('the import requires every member in the README examples', () => {
  for (const line of activities)
    for (const member of Object.keys(line)) {
      const { [member]: _, ...rest } = line;
      expect(createParseActivity(context)(rest), `${line.type} without ${member}`).toMatchObject({ ok: false });
    }
});
