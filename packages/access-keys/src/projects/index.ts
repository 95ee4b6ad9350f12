export * from './adopt.ts';
export * from './operations.ts';
export * from './project.ts';
