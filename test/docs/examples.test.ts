import { allExamples } from '@playline/api-docs';
import { findFaults } from '@playline/api-docs/test';
import { describe, expect, it } from 'vitest';
import type { TestGateway } from '../../services/gateway/src/test/open-gateway.ts';
import { openGatewayIn, PUBLIC_URL, SOURCE, send } from './gateways.ts';
import { type Collection, type Shown, shownInCollection, shownInPage, shownInText } from './shown.ts';

const examples = allExamples(SOURCE);

it('the description of the interface has no contradictions', () => {
  expect(findFaults(SOURCE)).toEqual([]);
});

describe('an example', () => {
  const answered = SOURCE.operations.flatMap(({ examples, answers }) =>
    examples.map((example) => ({ ...example, spec: answers.find(({ status }) => status === example.answer.status) })),
  );

  it.each(answered)(
    '$name gets exactly the answer that it shows, listed for its operation with every header that the operation documents',
    async ({ request, answer, situation, spec }) => {
      const gateway = await openGatewayIn(situation);
      const real = await send(gateway, { ...request, address: PUBLIC_URL + request.target });
      expect({ status: real.status, body: real.body }).toEqual({ status: answer.status, body: answer.body });
      for (const name of Object.keys(answer.headers)) expect(real.headers.get(name), name).toMatch(/\S/);
      expect(real.headers.get('content-type')).toBe(answer.headers['content-type'] ?? null);
      expect(real.headers.get('retry-after')).toBe(answer.headers['retry-after'] ?? null);
      expect(spec?.headers.length).toBeGreaterThan(0);
      for (const { name, schema } of spec?.headers ?? [])
        expect(real.headers.get(name) ?? 'absent', name).toMatch(new RegExp(schema.pattern ?? '^[1-9][0-9]*$'));
    },
  );
});

async function readPages({ url, routes }: TestGateway): Promise<Map<string, Shown>> {
  const pages = routes.filter(({ path }) => /^\/docs(\/[^.]*)?$/.test(path));
  const shown: Shown[] = [];
  for (const { path } of pages) shown.push(...shownInPage(await (await fetch(url + path)).text()));
  return new Map(shown.map((one) => [JSON.stringify(one), one]));
}

describe('the documents of the gateway', () => {
  it('show requests on their pages that get the answers beside them', async () => {
    const shown = await readPages(await openGatewayIn(undefined));
    expect(shown.size).toBe(examples.length);
    for (const { request, status, body } of shown.values()) {
      const gateway = await openGatewayIn(status === 429 ? 'full' : status === 500 ? 'broken' : undefined);
      const real = await send(gateway, request);
      expect({ request, status: real.status, body: real.body }).toEqual({ request, status, body });
    }
  });

  it('show every example in llms.txt as on the pages', async () => {
    const gateway = await openGatewayIn(undefined);
    const shown = shownInText(await (await fetch(`${gateway.url}/llms.txt`)).text());
    expect(shown).toHaveLength(examples.length);
    const onPages = [...(await readPages(gateway)).values()];
    for (const one of shown) expect(onPages).toContainEqual(one);
  });

  it('show every example in the collection that a reader can reproduce, as on the pages', async () => {
    const gateway = await openGatewayIn(undefined);
    const shown = shownInCollection((await (await fetch(`${gateway.url}/collection.json`)).json()) as Collection);
    expect(shown).toHaveLength(examples.filter(({ situation }) => situation === undefined).length);
    const onPages = [...(await readPages(gateway)).values()];
    for (const one of shown) expect(onPages).toContainEqual(one);
  });
});
