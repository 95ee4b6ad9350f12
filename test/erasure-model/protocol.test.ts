import { describe, expect, it } from 'vitest';
import { PARTS, type Part, PROGRAM, Protocol, type Step, type Variant } from './protocol.ts';
import { NEVER_ENDS, search } from './search.ts';

/** What the protocol must survive. */
const WORLDS: readonly Variant[] = [{}, { zombie: true }, { deleteFails: true }, { replay: true }];

/** What goes wrong somewhere when a part of the protocol is left out. */
const FAULT_WITHOUT: Readonly<Record<Part, string>> = {
  'hold the subject from the request on': 'rows of others, or of later, are lost',
  'wait for the linker': 'erased rows are left',
  'fence before anything is deleted': 'erased rows are left',
  'wait for the writer': 'erased rows are left',
  'delete from the graph': 'an erased link is left',
  'delete rows': NEVER_ENDS,
  'verify, and delete again': 'erased rows are left',
  'release the hold': 'a later link is lost',
  'scrub while the fence lives': 'erased rows are left',
  'fence nothing that is later than T': 'rows of others, or of later, are lost',
  'refuse links by T that touch a fenced id': 'an erased link is left',
  'stop a writer that has not loaded the fences': 'erased rows are left',
};

/** The eraser's steps with one of them behind another that comes later. */
function programWith(step: Step, behind: Step): Step[] {
  const others = PROGRAM.filter((each) => each !== step);
  return others.flatMap((each) => (each === behind ? [each, step] : [each]));
}

const searchFor = (variant: Variant) => search(new Protocol(variant));

describe('the protocol of an erasure, in any order of the steps of all who take part', () => {
  it.each(WORLDS)('leaves nothing of the person and loses nothing of anybody else or of later: %j', (world) => {
    const { faults, states, ends } = searchFor(world);
    expect([...faults]).toEqual([]);
    // It did search: a system that cannot move has no faults either.
    expect(states).toBeGreaterThan(1_000);
    expect(ends).toBeGreaterThan(0);
  });

  it.each(PARTS)('needs to %s', (part) => {
    const faults = WORLDS.flatMap((world) => [...searchFor({ ...world, without: [part] }).faults.keys()]);
    expect(faults).toContain(FAULT_WITHOUT[part]);
  });

  it.each<[Step, Step]>([
    ['wait for the linker', 'resolve'],
    ['resolve', 'fence before anything is deleted'],
    ['fence before anything is deleted', 'wait for the writer'],
    ['fence before anything is deleted', 'delete from the graph'],
    ['fence before anything is deleted', 'verify, and delete again'],
    ['wait for the writer', 'verify, and delete again'],
    ['delete rows', 'verify, and delete again'],
    ['verify, and delete again', 'write the receipt'],
  ])('may not %s only behind: %s', (step, behind) => {
    const program = programWith(step, behind);
    expect(WORLDS.flatMap((world) => [...searchFor({ ...world, program }).faults.keys()])).not.toEqual([]);
  });
});
