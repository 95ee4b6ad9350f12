import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { explainConnection } from '@playline/stores';
import { testStores } from '@playline/testkit';
import { expect, it } from 'vitest';
import { UnregisteredSchemaFault } from '../ports.ts';
import { createRegistryAdmin, createSchemaRegistry } from './schema-registry.ts';

const tag = randomBytes(4).toString('hex');
const id = { name: 'id', type: { type: 'fixed', name: 'Id', size: 16, logicalType: 'uuid' } };
const toSchema = (fields: object[]) => JSON.stringify({ type: 'record', name: `Test${tag}`, fields }, null, 2);
const schema = toSchema([id]);

const { register } = createRegistryAdmin({ url: testStores().registry });

it('the registry client returns the ID of the given schema even if the subject has a newer version', async () => {
  const subject = `test-${tag}-value`;
  const older = await register(subject, schema);
  const newer = await register(subject, toSchema([id, { name: 'more', type: 'string', default: '' }]));
  expect(newer).not.toBe(older);
  const registry = createSchemaRegistry({ url: testStores().registry });
  expect(await registry.idOf(subject, schema)).toBe(older);
  // Some registries return the schema without white space.
  expect(JSON.parse(String(await registry.schemaOf(older)))).toEqual(JSON.parse(schema));
});

it('the registry client reports an unregistered schema and requests it again on the next call', async () => {
  const subject = `test-${tag}-later-value`;
  const registry = createSchemaRegistry({ url: testStores().registry });
  const fault = await registry.idOf(subject, schema).catch((error: unknown) => error);
  expect(fault).toBeInstanceOf(UnregisteredSchemaFault);
  expect((fault as Error).message).toBe(
    `${subject}: the schema that this release writes is not registered; deploy its topics and schemas first`,
  );
  const registered = await register(subject, schema);
  await expect(registry.idOf(subject, toSchema([]))).rejects.toThrow(UnregisteredSchemaFault);
  expect(await registry.idOf(subject, schema)).toBe(registered);
});

it('the registry client requests each schema once, and again after a fault', async () => {
  let requests = 0;
  const server = createServer((_request, response) => {
    requests++;
    response.setHeader('content-type', 'application/json');
    response.statusCode = [404, 500, 404][requests - 1] ?? 200;
    const fault = requests === 1 ? { error_code: 40403 } : {};
    response.end(JSON.stringify({ schema, id: 7, version: 1, subject: 'subject', ...fault }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const registry = createSchemaRegistry({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
  expect(await registry.schemaOf(7)).toBeNull();
  await expect(registry.schemaOf(7)).rejects.toThrow('500');
  // A 404 from another server at this address.
  await expect(registry.schemaOf(7)).rejects.toThrow('404');
  expect(await registry.schemaOf(7)).toBe(schema);
  expect(await registry.idOf('subject', schema)).toBe(7);
  await new Promise((resolve) => server.close(resolve));
  expect(await registry.schemaOf(7)).toBe(schema);
  expect(await registry.idOf('subject', schema)).toBe(7);
  expect(requests).toBe(5);
});

it('the registry admin reports an unexpected server at the address and a rejected login', async () => {
  let status = 404;
  const respond = () => Promise.resolve(new Response('{"message":"no such route"}', { status }));
  const registry = createRegistryAdmin({ url: 'http://registry.test', fetch: respond });
  await expect(registry.hasSubject('any-value')).rejects.toThrow(
    'The schema registry responded 404 for GET /subjects/any-value/versions/latest: no such route',
  );
  status = 401;
  const fault: unknown = await registry.register('any-value', schema).catch((error: unknown) => error);
  expect(explainConnection('the schema registry', fault)).toEqual({
    message:
      'the schema registry cannot be used: it refuses the login (HTTP 401): correct SCHEMA_REGISTRY_USERNAME and SCHEMA_REGISTRY_PASSWORD',
    isRefusal: true,
  });
});
