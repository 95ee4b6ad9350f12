import { type GroupOffsets, type GroupPartition, type OffsetDecision, toFindingText } from '@playline/stream';
import { expect, it } from 'vitest';
import { runCommand } from '../app.ts';
import { createOffsetsCommand, OFFSET_GROUPS } from './offsets.ts';

const mark = { base: 70, epoch: 3, crc: 9 };
const intact: GroupPartition = {
  topic: 'messages',
  partition: 1,
  committed: 80,
  readTo: 80,
  mark,
  start: 10,
  end: 90,
  finding: { kind: 'intact' },
  divergesAt: null,
  decision: null,
};
const replaced: GroupPartition = { ...intact, partition: 2, finding: { kind: 'exchanged', end: 90 }, divergesAt: 50 };

function createOperator(partitions: readonly GroupPartition[], hasMembers = false) {
  const moved: { partition: number; from: number }[] = [];
  const decided: { group: string; partition: number; decision: OffsetDecision }[] = [];
  const openOffsets = async (): Promise<GroupOffsets> => ({
    list: async (group) => (group === 'writer' ? [...partitions] : []),
    decide: async (group, { partition }, decision) => void decided.push({ group, partition, decision }),
    move: async (_, { partition }, { from }) => {
      if (!hasMembers) moved.push({ partition, from });
      return !hasMembers;
    },
    close: async () => {},
  });
  const run = async (...args: string[]) => {
    const lines: string[] = [];
    const write = (line: string) => void lines.push(line);
    const terminal = { result: write, progress: write, isInteractive: false };
    const code = await runCommand([createOffsetsCommand({ openOffsets })], ['offsets', ...args], terminal);
    return { code, text: lines.join('\n') };
  };
  return { run, decided, moved };
}

const POSITION = ['--group', 'writer', '--topic', 'messages', '--partition'];

it('offsets list shows committed offsets and log bounds, and exits with code 1 if a partition needs a decision', async () => {
  const { run } = createOperator([intact, replaced]);
  const { code, text } = await run('list', '--group', 'writer');
  expect(code).toBe(1);
  expect(text).toMatch(/writer +messages +1 +80 +10 +90 +-\n/);
  expect(text).toContain(toFindingText(replaced.finding, 80));
  expect(await createOperator([intact]).run('list', '--group', 'writer')).toMatchObject({ code: 0 });
});

it('offsets list exits with code 1 if a group passed with --group has no committed offsets', async () => {
  const { run } = createOperator([intact]);
  expect(await run('list', '--group', 'wirter')).toMatchObject({
    code: 1,
    text: expect.stringContaining('group wirter has no committed offsets'),
  });
  // In a new deployment, the default groups may have no commits yet.
  expect(await run('list')).toMatchObject({ code: 0 });
});

it('offsets list shows all consumer groups by default', async () => {
  const { run } = createOperator([]);
  const { text } = await run('list');
  expect(OFFSET_GROUPS).toContain('minter');
  for (const group of OFFSET_GROUPS) expect(text).toContain(`group ${group} has no committed offsets`);
});

it('offsets accept resumes a replaced log at the offset where the two logs diverge', async () => {
  const { run, decided } = createOperator([intact, replaced]);
  const { code, text } = await run('accept', ...POSITION, '2');
  expect(code).toBe(0);
  expect(text).toContain('Reading resumes at 50');
  expect(decided).toMatchObject([{ group: 'writer', partition: 2, decision: { from: 50 } }]);
  const after = createOperator([{ ...replaced, decision: decided[0]!.decision }]);
  expect((await after.run('list', '--group', 'writer')).text).toContain('decided: the consumer resumes at 50');
});

it('offsets accept does not skip records without --yes', async () => {
  const { run, decided } = createOperator([replaced]);
  const skip = ['accept', ...POSITION, '2', '--from', 'end'];
  const refused = await run(...skip);
  expect(refused.code).toBe(1);
  expect(refused.text).toContain('WILL NEVER BE READ');
  expect(decided).toEqual([]);
  expect((await run(...skip, '--yes')).code).toBe(0);
  expect(decided).toMatchObject([{ decision: { from: 90 } }]);
});

it('the offsets command reports offsets committed by other tools, and skips no records without --yes', async () => {
  const foreignCommit: GroupPartition = { ...intact, readTo: 80, mark: null, finding: { kind: 'foreign', end: 90 } };
  const { run, decided } = createOperator([foreignCommit]);
  const listed = await run('list', '--group', 'writer');
  expect(listed).toMatchObject({ code: 1, text: expect.stringContaining(toFindingText(foreignCommit.finding, 80)) });
  const refused = await run('accept', ...POSITION, '1', '--from', '80');
  expect(refused.code).toBe(1);
  expect(refused.text).toContain(
    'Offsets 10 to 79 may contain unread records, which WILL NEVER BE READ: 70 offsets are skipped',
  );
  expect(decided).toEqual([]);
  expect((await run('accept', ...POSITION, '1')).code).toBe(0);
  expect((await run('accept', ...POSITION, '1', '--from', '80', '--yes')).code).toBe(0);
  expect(decided).toMatchObject([{ decision: { from: 10 } }, { decision: { from: 80 } }]);
});

it('offsets accept moves a group that needs no decision only with --from OFFSET and --yes', async () => {
  const { run, decided, moved } = createOperator([intact]);
  const rewind = ['accept', ...POSITION, '1', '--from', '20'];
  const refused = await run(...rewind);
  expect(refused.code).toBe(1);
  expect(refused.text).toContain('Offsets 20 to 79 are read again.');
  expect(refused.text).toContain('pass --yes');
  expect(moved).toEqual([]);
  expect((await run(...rewind, '--yes')).code).toBe(0);
  const forward = await run('accept', ...POSITION, '1', '--from', '85', '--yes');
  expect(forward.text).toContain('Offsets 80 to 84 contain unread records, which WILL NEVER BE READ: 5 offsets');
  expect(moved).toEqual([
    { partition: 1, from: 20 },
    { partition: 1, from: 85 },
  ]);
  expect(decided).toEqual([]);
});

it('offsets accept refuses to move a group that has members, and names the consumers to stop', async () => {
  const { run } = createOperator([intact], true);
  expect(await run('accept', ...POSITION, '1', '--from', '20', '--yes')).toMatchObject({
    code: 1,
    text: expect.stringContaining('stop every consumer of writer'),
  });
});

it('offsets accept changes no offsets if no decision is needed or arguments are invalid', async () => {
  const { run, decided } = createOperator([intact, replaced]);
  expect(await run('accept', ...POSITION, '1')).toMatchObject({ code: 1 });
  for (const args of [
    ['accept', ...POSITION, '7'],
    ['accept', ...POSITION, '2', '--from', '91'],
    ['accept', ...POSITION, '2', '--from', 'somewhere'],
    ['accept', ...POSITION, '-1'],
    ['accept', '--group', 'writer'],
    ['reset'],
  ])
    expect(await run(...args)).toMatchObject({ code: 2 });
  expect(decided).toEqual([]);
});
