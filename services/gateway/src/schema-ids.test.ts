import { identityLinkCodec, messageRecordCodec } from '@playline/contracts';
import { createLogger } from '@playline/runtime';
import { UnregisteredSchemaFault } from '@playline/stream';
import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import { resolveSchemaIds, topicNamesOf } from './schema-ids.ts';

it('resolveSchemaIds retries until the exact schemas of the encoder are registered, and logs missing schemas', async () => {
  const { schemas } = topicNamesOf('test.');
  const registered = new Map([[messageRecordCodec.schema, 7]]);
  const lines: string[] = [];
  const logger = createLogger(
    { service: 'gateway', level: 'warn' },
    { write: (line: string) => void lines.push(line) },
  );
  const idOf = async (subject: string, schema: string) => {
    const id = registered.get(schema);
    if (id === undefined) throw new UnregisteredSchemaFault(`${subject}: deploy first`);
    return id;
  };
  const ids = resolveSchemaIds({ idOf }, schemas, logger);
  await until('the error is logged', () => lines.length > 0);
  expect(lines[0]).toContain('test.audience.identity-links.v1-value: deploy first');
  expect(ids.current()).toBeNull();
  registered.set(identityLinkCodec.schema, 8);
  expect(await until('both ids are resolved', () => ids.current())).toEqual({ messages: 7, identityLinks: 8 });
  await ids.close();
});
