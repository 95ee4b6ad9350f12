import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { allExamples, createDocuments, toCommand } from '@playline/api-docs';
import { findFaults } from '@playline/api-docs/test';
import { expect, it } from 'vitest';
import { sentMessages } from '../../services/gateway/src/test/open-gateway.ts';
import { openGatewayIn, PUBLIC_URL, SOURCE, send } from './gateways.ts';
import { examplesInCollection, examplesInPage, examplesInText, withoutFreshValues } from './parse-examples.ts';

const examples = allExamples(SOURCE);

it('the gateway documentation has no inconsistencies', () => {
  expect(findFaults(SOURCE)).toEqual([]);
});

it.each([...new Set(examples.map(({ situation }) => situation))])(
  'the gateway returns the documented response and headers for each example in the situation %s',
  async (situation) => {
    const gateway = await openGatewayIn(situation);
    for (const { examples, responses } of SOURCE.operations)
      for (const { name, request, response } of examples.filter((example) => example.situation === situation)) {
        const real = await send(gateway, { ...request, address: PUBLIC_URL + request.target });
        expect([name, real.status, real.body]).toEqual([name, response.status, response.body]);
        for (const header of Object.keys(response.headers)) expect(real.headers.get(header), name).toMatch(/\S/);
        for (const header of ['content-type', 'retry-after'])
          expect(real.headers.get(header), name).toBe(response.headers[header] ?? null);
        const spec = responses.find(({ status }) => status === response.status);
        expect(spec?.headers.length, name).toBeGreaterThan(0);
        for (const { name: header, schema } of spec?.headers ?? [])
          expect(real.headers.get(header) ?? 'absent', name).toMatch(new RegExp(schema.pattern ?? '^[1-9][0-9]*$'));
      }
  },
);

it('every command runs as printed, twice, with new ids and times', async () => {
  const gateway = await openGatewayIn(undefined);
  const env = { PATH: process.env.PATH, PUBLISHABLE_KEY: gateway.key, SECRET_KEY: gateway.secretKey };
  const run = async (command: string) => {
    const { stdout } = await promisify(execFile)('sh', ['-c', command.replaceAll(PUBLIC_URL, gateway.url)], { env });
    const [head = '', body = ''] = stdout.split('\r\n\r\n');
    return [Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1]), withoutFreshValues(body.replaceAll(gateway.url, PUBLIC_URL))];
  };
  for (const example of examples.filter(({ situation }) => situation === undefined)) {
    const { status, body } = example.response;
    const expected = [status, body === null ? '' : withoutFreshValues(JSON.stringify(body))];
    const command = toCommand(example, SOURCE);
    expect([await run(command), await run(command)], example.name).toEqual([expected, expected]);
  }
  const ids = sentMessages(gateway.producer).map(({ messageId }) => Buffer.from(messageId).toString('hex'));
  expect(ids.length).toBeGreaterThan(6);
  expect(new Set(ids).size).toBe(ids.length);
});

const documents = createDocuments(SOURCE);
const textOf = (path: string) => documents.get(path)?.text ?? '';
const pages = [...documents].filter(([path]) => /^\/docs(\/[^.]*)?$/.test(path));

it.each([
  ['pages', pages.flatMap(([, { text }]) => examplesInPage(text)), examples],
  ['llms.txt', examplesInText(textOf('/llms.txt')), examples],
  [
    'collection',
    examplesInCollection(JSON.parse(textOf('/collection.json'))),
    examples.filter(({ situation }) => situation === undefined),
  ],
] as const)('every reproducible example appears in the documentation format "%s"', (_, shown, expected) => {
  const documented = expected.map(({ request: { method, target, headers, body }, response }) => ({
    request: { method, address: PUBLIC_URL + target, headers, body: withoutFreshValues(body ?? '') },
    status: response.status,
    body: response.body,
  }));
  const plain = shown.map(({ request, ...rest }) => ({
    request: { ...request, body: withoutFreshValues(request.body ?? '') },
    ...rest,
  }));
  const found = new Map(plain.map((one) => [JSON.stringify(one), one]));
  expect(found.size).toBe(documented.length);
  for (const one of documented) expect([...found.values()]).toContainEqual(one);
});
