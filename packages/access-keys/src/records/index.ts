export * from './level.ts';
export * from './log-bytes.ts';
export * from './pass-over.ts';
export * from './record-copy.ts';
export * from './record-log.ts';
export * from './record-store.ts';
export * from './record-view.ts';
export * from './view-faults.ts';
