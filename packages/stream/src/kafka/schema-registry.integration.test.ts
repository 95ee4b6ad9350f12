import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { testStores } from '@playline/testkit';
import { expect, it } from 'vitest';
import { UnknownSchemaFault } from '../ports.ts';
import { createSchemaRegistry } from './schema-registry.ts';

const schema = JSON.stringify({
  type: 'record',
  name: `Test${randomBytes(4).toString('hex')}`,
  fields: [{ name: 'id', type: { type: 'fixed', name: 'Id', size: 16, logicalType: 'uuid' } }],
});

async function register(subject: string): Promise<number> {
  const answer = await fetch(`${testStores().registry}/subjects/${subject}/versions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ schema }),
  });
  return ((await answer.json()) as { id: number }).id;
}

it('gives the id of a subject and the text of a schema as it was registered', async () => {
  const subject = `test-${randomBytes(4).toString('hex')}-value`;
  const id = await register(subject);
  const registry = createSchemaRegistry({ url: testStores().registry });
  expect(await registry.idOf(subject)).toBe(id);
  expect(JSON.parse(await registry.schemaOf(id))).toEqual(JSON.parse(schema));
});

it('asks once for each answer, so a registry that is down later does not matter, and asks again after a fault', async () => {
  let asked = 0;
  const server = createServer((_request, response) => {
    asked++;
    response.setHeader('content-type', 'application/json');
    response.statusCode = asked === 1 ? 404 : 200;
    response.end(JSON.stringify({ schema, id: 7, version: 1, subject: 'subject' }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const registry = createSchemaRegistry({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
  await expect(registry.schemaOf(7)).rejects.toThrow(UnknownSchemaFault);
  expect(await registry.schemaOf(7)).toBe(schema);
  await new Promise((resolve) => server.close(resolve));
  expect(await registry.schemaOf(7)).toBe(schema);
  expect(asked).toBe(2);
});
