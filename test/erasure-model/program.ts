/** The eraser's steps in order. */
export const PROGRAM = [
  // Also recreates a lost hold.
  'read the requests',
  'wait until all links up to T are published',
  'wait for the linker',
  // A link that an earlier hold delayed may have been republished after the first end offset.
  'wait for the linker a second time',
  'wait for the decisions',
  'resolve',
  'hold the whole closure',
  'store the closure',
  'fence',
  'wait for the linker after the hold',
  // Includes all of the linker's decisions, which precede this end offset.
  'wait for the writer',
  'forget',
  'restore later data',
  'delete decisions',
  'delete other rows',
  'verify and repeat the deletes',
  'write the receipt',
  'release the hold',
] as const;
export type Step = (typeof PROGRAM)[number];

/** The parts of the protocol. Tests omit one part at a time to show that it is necessary. */
export const PARTS = [
  'hold the subject when its request is read',
  'wait until all links up to T are published',
  'wait for the linker',
  'wait for the linker a second time',
  'wait for the decisions',
  'read the ends of decisions after the linker has caught up',
  'resolve by decisions not later than T',
  'adopt the closure of an overlapping erasure',
  'hold the whole closure',
  'extend the hold only while it exists',
  'repeat the resolution after erasures are merged',
  'store the closure',
  'fence',
  'fence nothing later than T',
  'refuse links up to T that contain a fenced id',
  'refuse decisions up to T about a fenced id',
  'refuse consents up to T of a fenced id',
  'stop a writer that has not loaded the fences',
  'wait for the linker after the hold',
  'wait for the writer',
  'forget',
  'forget only while the hold exists',
  'forget no later consent',
  'restore later links',
  'restore later consents',
  'delete decisions',
  'delete other rows',
  'verify and repeat the deletes',
  'release the hold',
  'expire a hold whose request is lost',
  'scrub while the fence exists',
] as const;
export type Part = (typeof PARTS)[number];
