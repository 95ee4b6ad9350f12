import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { EXIT } from '../command.ts';
import { runInProcess } from '../test/run-in-process.ts';
import { createImportCommand } from './import.ts';

async function run(...words: string[]) {
  const nowhere = () => {
    throw new Error('not opened in this test');
  };
  const command = createImportCommand({
    openLog: nowhere,
    openProducer: nowhere,
    openStore: nowhere,
    schemas: { idOf: nowhere, schemaOf: nowhere },
    topicPrefix: '',
    folder: '/nowhere',
    stdin: Readable.from([]),
    stop: new AbortController().signal,
  });
  return runInProcess([command], ['import', ...words]);
}

describe('the arguments of import', () => {
  const topic = ['--topic', 'chain.activities.v1'];

  it.each([
    ['no topic', ['-'], "required option '--topic <topic>' not specified"],
    [
      'another topic',
      ['--topic', 'audience.messages.v1', '-'],
      'Allowed choices are chain.activities.v1, chain.tokens.v1',
    ],
    ['no file', topic, "missing required argument 'file'"],
    ['a file that is not there', [...topic, 'none.ndjson'], 'there is no file /nowhere/none.ndjson'],
    ['two files', [...topic, 'a', 'b'], 'too many arguments'],
    ['a chain that is no name', [...topic, '-', '--chain', 'Démo'], '--chain: expected'],
    ['an unknown option', [...topic, '-', '--fast'], "unknown option '--fast'"],
  ])('%s: exit code 2, and nothing is opened', async (_name, words, sentence) => {
    const { code, results, progress } = await run(...words);
    expect({ code, results }).toEqual({ code: EXIT.usage, results: [] });
    expect(progress).toContain(sentence);
    expect(progress).toContain('(see npm run import -- --help)');
  });
});
