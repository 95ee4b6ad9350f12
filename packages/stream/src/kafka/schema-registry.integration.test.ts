import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { testStores } from '@playline/testkit';
import { expect, it } from 'vitest';
import { UnregisteredSchemaFault } from '../ports.ts';
import { createSchemaRegistry } from './schema-registry.ts';

const tag = randomBytes(4).toString('hex');
const id = { name: 'id', type: { type: 'fixed', name: 'Id', size: 16, logicalType: 'uuid' } };
const toText = (fields: object[]) => JSON.stringify({ type: 'record', name: `Test${tag}`, fields }, null, 2);
const schema = toText([id]);

async function register(subject: string, text: string): Promise<number> {
  const answer = await fetch(`${testStores().registry}/subjects/${subject}/versions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ schema: text }),
  });
  return ((await answer.json()) as { id: number }).id;
}

it('gives the id of exactly the text that is asked for, also when the subject has a newer one', async () => {
  const subject = `test-${tag}-value`;
  const older = await register(subject, schema);
  const newer = await register(subject, toText([id, { name: 'more', type: 'string', default: '' }]));
  expect(newer).not.toBe(older);
  const registry = createSchemaRegistry({ url: testStores().registry });
  expect(await registry.idOf(subject, schema)).toBe(older);
  expect(await registry.schemaOf(older)).toBe(schema);
});

it('says that a text is not registered, and asks again', async () => {
  const subject = `test-${tag}-later-value`;
  const registry = createSchemaRegistry({ url: testStores().registry });
  const fault = await registry.idOf(subject, schema).catch((error: unknown) => error);
  expect(fault).toBeInstanceOf(UnregisteredSchemaFault);
  expect((fault as Error).message).toBe(
    `${subject}: the schema that this release writes is not registered; deploy its topics and schemas first`,
  );
  const registered = await register(subject, schema);
  await expect(registry.idOf(subject, toText([]))).rejects.toThrow(UnregisteredSchemaFault);
  expect(await registry.idOf(subject, schema)).toBe(registered);
});

it('asks once for each answer, so a registry that is down later does not matter, and asks again after none', async () => {
  let asked = 0;
  const server = createServer((_request, response) => {
    asked++;
    response.setHeader('content-type', 'application/json');
    response.statusCode = [404, 500, 404][asked - 1] ?? 200;
    const fault = asked === 1 ? { error_code: 40403 } : {};
    response.end(JSON.stringify({ schema, id: 7, version: 1, subject: 'subject', ...fault }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const registry = createSchemaRegistry({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
  expect(await registry.schemaOf(7)).toBeNull();
  await expect(registry.schemaOf(7)).rejects.toThrow('500');
  // A 404 that is not from the registry: something else answers at its URL.
  await expect(registry.schemaOf(7)).rejects.toThrow('404');
  expect(await registry.schemaOf(7)).toBe(schema);
  expect(await registry.idOf('subject', schema)).toBe(7);
  await new Promise((resolve) => server.close(resolve));
  expect(await registry.schemaOf(7)).toBe(schema);
  expect(await registry.idOf('subject', schema)).toBe(7);
  expect(asked).toBe(5);
});
