/** The steps of the eraser, in order. */
export const PROGRAM = [
  // Also creates a lost hold again.
  'read the requests',
  'wait until no gateway holds back a link by T',
  'wait for the linker',
  // A link that an earlier hold delayed may have been sent again behind the first end.
  'wait for the linker once more',
  'wait for the decisions',
  'resolve',
  'hold the whole closure',
  'store the closure',
  'fence',
  'wait for the linker behind the hold',
  // Includes decisions: everything that the linker has decided is before this end.
  'wait for the writer',
  'forget',
  'put back what is later',
  'delete decisions',
  'delete other rows',
  'verify, and delete again',
  'write the receipt',
  'release the hold',
] as const;
export type Step = (typeof PROGRAM)[number];

/** The parts of the protocol. A test leaves out each one to show what it prevents. */
export const PARTS = [
  'hold the subject when its request is read',
  'wait until no gateway holds back a link by T',
  'wait for the linker',
  'wait for the linker once more',
  'wait for the decisions',
  'take the ends of decisions when the linker has passed',
  'resolve by decisions not later than T',
  'take over the closure of an erasure that overlaps',
  'hold the whole closure',
  'hold it only while the hold exists',
  'resolve again where erasures were merged',
  'store the closure',
  'fence',
  'fence nothing that is later than T',
  'refuse links by T that touch a fenced id',
  'refuse decisions by T about a fenced id',
  'refuse consents by T of a fenced id',
  'stop a writer that has not loaded the fences',
  'wait for the linker behind the hold',
  'wait for the writer',
  'forget',
  'forget only while the hold exists',
  'forget no later consent',
  'put back later links',
  'put back later consents',
  'delete decisions',
  'delete other rows',
  'verify, and delete again',
  'release the hold',
  'let a hold lapse whose request is lost',
  'scrub while the fence lives',
] as const;
export type Part = (typeof PARTS)[number];
