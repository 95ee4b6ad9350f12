import { describe, expect, it } from 'vitest';
import { PARTS, type Part, PROGRAM, type Step } from './program.ts';
import { Protocol } from './protocol.ts';
import { NEVER_ENDS, search } from './search.ts';
import { WORLDS, type WorldName } from './worlds.ts';

const LEFT = 'erased rows are left';
const LINK_LOST = 'a later link is lost';
const ROWS_LOST = 'rows of others, or later ones, are lost';

/** For each part of the protocol, the world in which its absence causes a fault, and the fault. */
const FAULT_WITHOUT: Readonly<Record<Part, readonly [WorldName, string]>> = {
  // The hold is lost, and no actor offsets it again.
  'hold the subject when its request is read': ['the hold is lost', NEVER_ENDS],
  'wait until no gateway holds back a link by T': ['a link by T comes behind the request', LEFT],
  'wait for the linker': ['nothing goes wrong', LEFT],
  'wait for the linker once more': ['two erasures of one person', LEFT],
  'wait for the decisions': ['nothing goes wrong', LEFT],
  'take the ends of decisions when the linker has passed': ['nothing goes wrong', LEFT],
  // Without it, a stranger who was linked later counts as the person.
  'resolve by decisions not later than T': ['the hold is lost', ROWS_LOST],
  'take over the closure of an erasure that overlaps': ['the same request comes twice', LEFT],
  // A link of another member is decided while two erasers remove ids from the graph.
  'hold the whole closure': ['another eraser takes over', LINK_LOST],
  'hold it only while the hold exists': ['another eraser takes over', LINK_LOST],
  'resolve again where erasures were merged': ['two erasures of one person', LEFT],
  // The next eraser cannot find ids whose decisions are deleted already.
  'store the closure': ['another eraser takes over', LEFT],
  fence: ['everything is read again', LEFT],
  'fence nothing that is later than T': ['nothing goes wrong', ROWS_LOST],
  'refuse links by T that touch a fenced id': ['everything is read again', 'an erased link is left'],
  'refuse decisions by T about a fenced id': ['everything is read again', LEFT],
  'refuse consents by T of a fenced id': ['consents are given', 'an erased consent is left'],
  'stop a writer that has not loaded the fences': ['everything is read again', LEFT],
  // A link that is decided but not yet published is not put back.
  'wait for the linker behind the hold': ['two erasures of one person', LINK_LOST],
  'wait for the writer': ['nothing goes wrong', LEFT],
  forget: ['nothing goes wrong', 'an erased link is left'],
  'forget only while the hold exists': ['another eraser takes over', LINK_LOST],
  'forget no later consent': ['consents are given', 'a later consent is lost'],
  'put back later links': ['the hold is lost', LINK_LOST],
  // A late erased consent replaced the later one in Redis.
  'put back later consents': ['consents are given', 'a later consent is lost'],
  'delete decisions': ['nothing goes wrong', NEVER_ENDS],
  'delete other rows': ['nothing goes wrong', NEVER_ENDS],
  'verify, and delete again': ['a delete fails', LEFT],
  'release the hold': ['nothing goes wrong', NEVER_ENDS],
  'let a hold lapse whose request is lost': ['the request may be lost', NEVER_ENDS],
  'scrub while the fence lives': ['a zombie writer inserts late', LEFT],
};

/** The eraser's steps, with one of them moved behind a later one. */
function programWith(step: Step, behind: Step): Step[] {
  const others = PROGRAM.filter((each) => each !== step);
  return others.flatMap((each) => (each === behind ? [each, step] : [each]));
}

describe('the erasure protocol, in any order of the steps of all actors,', () => {
  it.each(Object.entries(WORLDS))(
    'keeps all later data and all data of other people, and leaves nothing of the erased person: %s',
    (_, world) => {
      const { faults, states, ends } = search(new Protocol({ world }));
      expect(Object.fromEntries(faults)).toEqual({});
      // Proves that the search reached states, because a system that cannot move has no faults either.
      expect(states).toBeGreaterThan(400);
      expect(ends).toBeGreaterThan(0);
    },
  );

  it.each(PARTS)('fails without this part: %s', (without) => {
    const [world, fault] = FAULT_WITHOUT[without];
    const { faults } = search(new Protocol({ world: WORLDS[world], without }), (found) => found === fault);
    expect([...faults.keys()]).toContain(fault);
  });

  it.each<[Step, Step, WorldName, string]>([
    [
      'wait until no gateway holds back a link by T',
      'wait for the linker once more',
      'a link by T comes behind the request',
      LEFT,
    ],
    ['wait for the linker once more', 'wait for the decisions', 'two erasures of one person', LEFT],
    ['wait for the decisions', 'resolve', 'nothing goes wrong', LEFT],
    ['hold the whole closure', 'wait for the linker behind the hold', 'two erasures of one person', LINK_LOST],
    ['hold the whole closure', 'forget', 'another eraser takes over', LINK_LOST],
    ['store the closure', 'delete decisions', 'another eraser takes over', LEFT],
    ['fence', 'wait for the writer', 'consents are given', LEFT],
    ['fence', 'forget', 'everything is read again', 'an erased link is left'],
    ['wait for the linker behind the hold', 'wait for the writer', 'two erasures of one person', LINK_LOST],
    ['wait for the writer', 'put back what is later', 'consents are given', 'a later consent is lost'],
    ['wait for the writer', 'verify, and delete again', 'nothing goes wrong', LEFT],
    ['forget', 'put back what is later', 'consents are given', 'a later consent is lost'],
    ['forget', 'write the receipt', 'nothing goes wrong', 'an erased link is left'],
    ['put back what is later', 'release the hold', 'the hold is lost', LINK_LOST],
    ['verify, and delete again', 'write the receipt', 'a delete fails', LEFT],
  ])('fails when a step comes too late: "%s" only after "%s"', (step, behind, world, fault) => {
    const system = new Protocol({ world: WORLDS[world], program: programWith(step, behind) });
    expect([...search(system, (found) => found === fault).faults.keys()]).toContain(fault);
  });
});
