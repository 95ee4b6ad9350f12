import { CLOCK_LINES } from './planted-clocks.ts';
import { SEAM_LINES } from './planted-seams.ts';
import { SPREAD_LINES } from './planted-spreads.ts';
import { WORD_LINES } from './planted-words.ts';

/** One line at the top of one file of the tree without breaches, and the rule that it breaks. */
export const PLANTED_LINES: { because: string; path: string; lines: string; rule: string }[] = [
  // Arrows.
  {
    because: 'a service names an adapter outside of main.ts',
    path: 'services/gateway/src/app.ts',
    lines: "import '@playline/people/redis';",
    rule: 'arrows',
  },
  {
    because: 'a command names an adapter',
    path: 'services/gateway/src/routes/messages/route.ts',
    lines: "import '@playline/stream/kafka';",
    rule: 'arrows',
  },
  {
    because: 'a package imports a service',
    path: 'packages/people/src/index.ts',
    lines: "import '@playline/gateway';",
    rule: 'arrows',
  },
  {
    because: 'a noun imports stream',
    path: 'packages/people/src/index.ts',
    lines: "import '@playline/stream';",
    rule: 'arrows',
  },
  {
    because: 'a noun imports the runtime, if only a type',
    path: 'packages/people/src/index.ts',
    lines: "import type { Metrics } from '@playline/runtime';",
    rule: 'arrows',
  },
  {
    because: 'an adapter imports http',
    path: 'packages/people/src/redis/index.ts',
    lines: "import '@playline/http';",
    rule: 'arrows',
  },
  {
    because: 'stream imports contracts',
    path: 'packages/stream/src/index.ts',
    lines: "export * from '@playline/contracts';",
    rule: 'arrows',
  },
  {
    because: 'stream imports a value of the runtime',
    path: 'packages/stream/src/index.ts',
    lines: "import { createMetrics } from '@playline/runtime';",
    rule: 'arrows',
  },
  {
    because: 'a foundation imports something of ours',
    path: 'packages/errors/src/index.ts',
    lines: "const c = await import('@playline/contracts');",
    rule: 'arrows',
  },
  {
    because: 'a service imports the testkit',
    path: 'services/gateway/src/app.ts',
    lines: "import { until } from '@playline/testkit';",
    rule: 'arrows',
  },
  {
    because: 'a composition root imports infra',
    path: 'services/gateway/src/main.ts',
    lines: "import '@playline/infra/kafka';",
    rule: 'arrows',
  },
  {
    because: 'infra imports a noun',
    path: 'infra/local/index.ts',
    lines: "import '@playline/people';",
    rule: 'arrows',
  },
  {
    because: 'a package names itself',
    path: 'packages/people/src/redis/index.ts',
    lines: "import '@playline/people';",
    rule: 'arrows',
  },
  // Relative imports.
  {
    because: 'a relative import leaves its package',
    path: 'services/gateway/src/app.ts',
    lines: "import '../../../packages/contracts/src/index.ts';",
    rule: 'relative imports',
  },
  {
    because: 'a test reaches into another service',
    path: 'services/gateway/src/app.test.ts',
    lines: "import '../../eraser/src/pipeline.ts';",
    rule: 'relative imports',
  },
  {
    because: 'a noun knows its adapter',
    path: 'packages/people/src/index.ts',
    lines: "import './redis/index.ts';",
    rule: 'relative imports',
  },
  {
    because: 'an adapter knows another adapter',
    path: 'packages/people/src/redis/index.ts',
    lines: "import type { M } from '../memory/index.ts';",
    rule: 'relative imports',
  },
  {
    because: 'running code imports a test',
    path: 'services/gateway/src/app.ts',
    lines: "import './app.test.ts';",
    rule: 'relative imports',
  },
  // Vendor packages and the environment.
  {
    because: 'a vendor package is not declared',
    path: 'services/gateway/src/app.ts',
    lines: "import express from 'express';",
    rule: 'vendor packages',
  },
  {
    because: 'running code uses a tool of the tests',
    path: 'services/gateway/src/app.ts',
    lines: "import 'vitest';",
    rule: 'vendor packages',
  },
  {
    because: 'a noun uses a store client outside of its adapters',
    path: 'packages/people/src/index.ts',
    lines: "import type { Redis } from 'ioredis';",
    rule: 'vendor packages',
  },
  {
    because: 'an import is computed',
    path: 'services/gateway/src/app.ts',
    lines: 'void import(globalThis.name);',
    rule: 'vendor packages',
  },
  {
    because: 'a service reads the environment outside of main.ts',
    path: 'services/gateway/src/config.ts',
    lines: 'export const port = process.env.PORT;',
    rule: 'environment',
  },
  // Sizes.
  { because: 'a file is too long', path: 'infra/local/index.ts', lines: '// line\n'.repeat(500), rule: 'sizes' },
  {
    because: 'a function is too long',
    path: 'services/gateway/src/app.ts',
    lines: `const f = () => {${'\n'.repeat(60)}};`,
    rule: 'sizes',
  },
  {
    because: 'a test is too long',
    path: 'services/gateway/src/app.test.ts',
    lines: `it('says three words', () => {${'\n'.repeat(60)}});`,
    rule: 'sizes',
  },
  {
    because: 'a method has five parameters',
    path: 'services/gateway/src/app.ts',
    lines: 'class C {\n  m(a: 1, b: 2, c: 3, { d }: { d: 3 }, ...e: 4[]) {}\n}',
    rule: 'sizes',
  },
  // Verbs.
  {
    because: 'openX returns nothing to close',
    path: 'services/gateway/src/app.ts',
    lines: 'interface T { a: 1 }\nexport function openT(): Promise<T> { throw 1; }',
    rule: 'verbs',
  },
  {
    because: 'createX returns something to close',
    path: 'services/gateway/src/app.ts',
    lines: 'export const createT = (): { close(): void } => { throw 1; };',
    rule: 'verbs',
  },
  {
    because: 'isX answers with something else',
    path: 'services/gateway/src/app.ts',
    lines: 'export function isT(): string { throw 1; }',
    rule: 'verbs',
  },
  {
    because: 'a guard has another name',
    path: 'services/gateway/src/app.ts',
    lines: 'export function checkT(a: unknown): a is string { throw a; }',
    rule: 'verbs',
  },
  {
    because: 'parseX returns nothing typed',
    path: 'services/gateway/src/app.ts',
    lines: 'export function parseT(a: unknown): unknown { return a; }',
    rule: 'verbs',
  },
  {
    because: 'toX returns nothing',
    path: 'services/gateway/src/app.ts',
    lines: 'export function toT(a: unknown): void { throw a; }',
    rule: 'verbs',
  },
  ...CLOCK_LINES,
  ...SEAM_LINES,
  ...SPREAD_LINES,
  ...WORD_LINES,
  // Tests.
  {
    because: 'a test has no sentence for a title',
    path: 'services/gateway/src/app.test.ts',
    lines: "it('works', () => {});",
    rule: 'tests',
  },
  {
    because: 'a table of tests has no sentence for a title',
    path: 'services/gateway/src/app.test.ts',
    lines: "it.each([1])('%s', () => {});",
    rule: 'tests',
  },
  {
    because: 'a test is left out',
    path: 'services/gateway/src/app.test.ts',
    lines: "it.skip('says three words', () => {});",
    rule: 'tests',
  },
  {
    because: 'a hook of a shared module belongs to its first user alone',
    path: 'services/gateway/src/test/open-gateway.ts',
    lines: 'afterEach(() => {});',
    rule: 'tests',
  },
];

/** Files to add to the tree without breaches, or to remove from it. */
export const PLANTED_FILES: { because: string; files: Record<string, string | null>; breach: string }[] = [
  {
    because: 'a drawer for anything',
    files: { 'packages/people/src/utils/text.ts': '' },
    breach: 'file names: packages/people/src/utils/text.ts',
  },
  {
    because: 'a file for anything',
    files: { 'infra/test-helpers.ts': '' },
    breach: 'file names: infra/test-helpers.ts',
  },
  { because: 'a name in camel case', files: { 'infra/bootStrap.ts': '' }, breach: 'file names: infra/bootStrap.ts' },
  { because: 'a stranger at the top', files: { 'tools/x.md': '' }, breach: 'top level: tools' },
  { because: 'no README', files: { 'services/gateway/README.md': null }, breach: 'services: services/gateway' },
  { because: 'no main.ts', files: { 'services/gateway/src/main.ts': null }, breach: 'services: services/gateway' },
  { because: 'no config.ts', files: { 'services/eraser/src/config.ts': null }, breach: 'services: services/eraser' },
  {
    because: 'no pipeline.ts',
    files: { 'services/eraser/src/pipeline.ts': null },
    breach: 'services: services/eraser',
  },
  { because: 'no step', files: { 'services/eraser/src/steps/erase.ts': null }, breach: 'services: services/eraser' },
  {
    because: 'another name than its folder',
    files: { 'packages/errors/package.json': '{"name":"errors","private":true}' },
    breach: 'manifests: packages/errors/package.json',
  },
  {
    because: 'a package to publish',
    files: { 'packages/errors/package.json': '{"name":"@playline/errors"}' },
    breach: 'manifests: packages/errors/package.json',
  },
  {
    because: 'no test in a test file',
    files: { 'test/empty.test.ts': 'export {};' },
    breach: 'tests: test/empty.test.ts',
  },
];
