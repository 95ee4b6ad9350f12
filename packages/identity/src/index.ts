export * from './blocked.ts';
export * from './decisions.ts';
export * from './facts.ts';
export * from './graph.ts';
export * from './keyer.ts';
export * from './rebuild.ts';
export * from './steps.ts';
