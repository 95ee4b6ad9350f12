import { describe, expect, it } from 'vitest';
import { PARTS, type Part, PROGRAM, type Step } from './program.ts';
import { Protocol } from './protocol.ts';
import { NEVER_ENDS, search } from './search.ts';
import { WORLDS, type WorldName } from './worlds.ts';

const ROWS_REMAIN = 'erased rows remain';
const LINK_LOST = 'a later link is lost';
const ROWS_LOST = 'rows of other people, or later rows, are lost';

/** For each part, a world in which omitting the part causes a fault, and the fault. */
const FAULT_IF_OMITTED: Readonly<Record<Part, readonly [WorldName, string]>> = {
  // No actor recreates the lost hold.
  'hold the subject when its request is read': ['the hold is lost', NEVER_ENDS],
  'wait until all links up to T are published': ['a link up to T follows the request', ROWS_REMAIN],
  'wait for the linker': ['nothing goes wrong', ROWS_REMAIN],
  'wait for the linker a second time': ['two erasures of one person', ROWS_REMAIN],
  'wait for the decisions': ['nothing goes wrong', ROWS_REMAIN],
  'read the ends of decisions after the linker has caught up': ['nothing goes wrong', ROWS_REMAIN],
  // A stranger who was linked later would be erased.
  'resolve by decisions not later than T': ['the hold is lost', ROWS_LOST],
  'adopt the closure of an overlapping erasure': ['the same request arrives twice', ROWS_REMAIN],
  // Another member's link is decided while two erasers remove ids from the graph.
  'hold the whole closure': ['another eraser takes over', LINK_LOST],
  'extend the hold only while it exists': ['another eraser takes over', LINK_LOST],
  'repeat the resolution after erasures are merged': ['two erasures of one person', ROWS_REMAIN],
  // The next eraser cannot find ids whose decisions have been deleted.
  'store the closure': ['another eraser takes over', ROWS_REMAIN],
  fence: ['the whole log is reread', ROWS_REMAIN],
  'fence nothing later than T': ['nothing goes wrong', ROWS_LOST],
  'refuse links up to T that contain a fenced id': ['the whole log is reread', 'an erased link remains'],
  'refuse decisions up to T about a fenced id': ['the whole log is reread', ROWS_REMAIN],
  'refuse consents up to T of a fenced id': ['consents are recorded', 'an erased consent remains'],
  'stop a writer that has not loaded the fences': ['the whole log is reread', ROWS_REMAIN],
  // A link whose decision is not published yet is not restored.
  'wait for the linker after the hold': ['two erasures of one person', LINK_LOST],
  'wait for the writer': ['nothing goes wrong', ROWS_REMAIN],
  forget: ['nothing goes wrong', 'an erased link remains'],
  'forget only while the hold exists': ['another eraser takes over', LINK_LOST],
  'forget no later consent': ['consents are recorded', 'a later consent is lost'],
  'restore later links': ['the hold is lost', LINK_LOST],
  // An erased consent that arrived late has replaced the later consent in Redis.
  'restore later consents': ['consents are recorded', 'a later consent is lost'],
  'delete decisions': ['nothing goes wrong', NEVER_ENDS],
  'delete other rows': ['nothing goes wrong', NEVER_ENDS],
  'verify and repeat the deletes': ['a delete fails', ROWS_REMAIN],
  'release the hold': ['nothing goes wrong', NEVER_ENDS],
  'expire a hold whose request is lost': ['the request may be lost', NEVER_ENDS],
  'scrub while the fence exists': ['a zombie writer inserts late', ROWS_REMAIN],
};

function programWith(step: Step, after: Step): Step[] {
  const remaining = PROGRAM.filter((each) => each !== step);
  return remaining.flatMap((each) => (each === after ? [each, step] : [each]));
}

describe('the erasure protocol', () => {
  it.each(Object.entries(WORLDS))(
    "every interleaving erases exactly the person's data up to the cut-off: %s",
    (_, world) => {
      const { faults, states, ends } = search(new Protocol({ world }));
      expect(Object.fromEntries(faults)).toEqual({});
      // A search that reaches no states would also find no faults.
      expect(states).toBeGreaterThan(400);
      expect(ends).toBeGreaterThan(0);
    },
  );

  it.each(PARTS)('the protocol fails without "%s"', (omitted) => {
    const [world, fault] = FAULT_IF_OMITTED[omitted];
    const { faults } = search(new Protocol({ world: WORLDS[world], omitted }), (found) => found === fault);
    expect([...faults.keys()]).toContain(fault);
  });

  it.each<[Step, Step, WorldName, string]>([
    [
      'wait until all links up to T are published',
      'wait for the linker a second time',
      'a link up to T follows the request',
      ROWS_REMAIN,
    ],
    ['wait for the linker a second time', 'wait for the decisions', 'two erasures of one person', ROWS_REMAIN],
    ['wait for the decisions', 'resolve', 'nothing goes wrong', ROWS_REMAIN],
    ['hold the whole closure', 'wait for the linker after the hold', 'two erasures of one person', LINK_LOST],
    ['hold the whole closure', 'forget', 'another eraser takes over', LINK_LOST],
    ['store the closure', 'delete decisions', 'another eraser takes over', ROWS_REMAIN],
    ['fence', 'wait for the writer', 'consents are recorded', ROWS_REMAIN],
    ['fence', 'forget', 'the whole log is reread', 'an erased link remains'],
    ['wait for the linker after the hold', 'wait for the writer', 'two erasures of one person', LINK_LOST],
    ['wait for the writer', 'restore later data', 'consents are recorded', 'a later consent is lost'],
    ['wait for the writer', 'verify and repeat the deletes', 'nothing goes wrong', ROWS_REMAIN],
    ['forget', 'restore later data', 'consents are recorded', 'a later consent is lost'],
    ['forget', 'write the receipt', 'nothing goes wrong', 'an erased link remains'],
    ['restore later data', 'release the hold', 'the hold is lost', LINK_LOST],
    ['verify and repeat the deletes', 'write the receipt', 'a delete fails', ROWS_REMAIN],
  ])('the protocol fails when a step runs too late: "%s" after "%s"', (step, after, world, fault) => {
    const system = new Protocol({ world: WORLDS[world], program: programWith(step, after) });
    expect([...search(system, (found) => found === fault).faults.keys()]).toContain(fault);
  });
});
