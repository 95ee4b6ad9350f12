import { allExamples, createDocuments } from '@playline/api-docs';
import { findFaults } from '@playline/api-docs/test';
import { expect, it } from 'vitest';
import { openGatewayIn, PUBLIC_URL, SOURCE, send } from './gateways.ts';
import { examplesInCollection, examplesInPage, examplesInText } from './parse-examples.ts';

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
    request: { method, address: PUBLIC_URL + target, headers, body },
    status: response.status,
    body: response.body,
  }));
  const found = new Map(shown.map((one) => [JSON.stringify(one), one]));
  expect(found.size).toBe(documented.length);
  for (const one of documented) expect([...found.values()]).toContainEqual(one);
});
