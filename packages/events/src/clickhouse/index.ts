export { openEventStore } from './event-store.ts';
export { storedOffsetsQuery } from './stored-offsets.ts';
