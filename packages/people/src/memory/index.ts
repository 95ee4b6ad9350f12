export * from './consents.ts';
export * from './graph.ts';
export * from './holds.ts';
