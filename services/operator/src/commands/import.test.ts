import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { EXIT } from '../command.ts';
import { runHere } from '../test/run-here.ts';
import { createImportCommand } from './import.ts';

async function run(...words: string[]) {
  const nowhere = () => {
    throw new Error('nobody asks');
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
  return runHere([command], ['import', ...words]);
}

describe('the arguments of import', () => {
  const topic = ['--topic', 'chain.activities.v1'];

  it.each([
    ['no topic', ['-'], '--topic: expected chain.activities.v1 or chain.tokens.v1'],
    ['another topic', ['--topic', 'audience.messages.v1', '-'], '--topic: expected'],
    ['no file', topic, 'name a file, or -'],
    ['a file that is not there', [...topic, 'none.ndjson'], 'there is no file /nowhere/none.ndjson'],
    ['two files', [...topic, 'a', 'b'], "unexpected word 'b'"],
    ['a chain that is no name', [...topic, '-', '--chain', 'Démo'], '--chain: expected'],
    ['an unknown option', [...topic, '-', '--fast'], "Unknown option '--fast'"],
  ])('%s: exit code 2, and nothing is opened', async (_name, words, sentence) => {
    const { code, results, progress } = await run(...words);
    expect({ code, results }).toEqual({ code: EXIT.usage, results: [] });
    expect(progress).toContain(sentence);
    expect(progress).toContain('usage: operator import');
  });

  it('--help lists every option', async () => {
    const { code, results } = await run('--help');
    expect(code).toBe(EXIT.ok);
    for (const name of ['topic', 'chain', 'writer-group', 'json']) expect(results[0]).toContain(`--${name}`);
  });
});
