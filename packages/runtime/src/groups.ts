/** The consumer group of each service, unless its settings name another one. */
export const GROUPS = {
  writer: 'event-writer',
  linker: 'identity-linker',
  activityWriter: 'activity-writer',
  minter: 'minter',
  eraser: 'eraser',
} as const;

/**
 * The group in which an event writer reads the access topics. It is not the group of the events: a member of an older
 * release could get partitions of a topic that it does not know, and a fault of one topic could delay the others.
 */
export const auditGroupOf = (writerGroup: string): string => `${writerGroup}-audit`;

/** The group in which an identity linker reads the topic of parked links. */
export const parkedGroupOf = (linkerGroup: string): string => `${linkerGroup}-parked`;
