export { applyTopics, dropTopics, type TopicsApplied, type TopicsTarget } from './apply.ts';
export { patchKafkaTimer } from './timer.ts';
export { allTopics } from './topics.ts';
