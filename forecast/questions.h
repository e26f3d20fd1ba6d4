// questions.h - the questions about jobs that have not run which the commands
// predict, fit and simulate of the Python package ask (lockstep/tell.c).
//
// All numbers of an answer are doubles to the last bit. A WORD is a setting of
// train; those of "run" hold for all questions after it.
//
//     ["run", WORD..]        the model, its size, and all settings
//     ["check", WHO, KEY..]  refuses settings that contradict each other, and
//                            those of a backend that are none of the keys
//     ["link", TEXT, ALPHA_S, WHO, BYTES]
//                            the fit of WHO for link=TEXT (sync/link.h), of the
//                            first one without a name, and its error at so many
//                            bytes. The question "step" may use these links
//     ["step", WORD..]       a step (mesh_case.h); with the words of a cluster
//                            and its times, which are in questions.c
//     ["best", MEMORY, WORD.., "/", WORDS.., "/", WORDS.., ..]
//                            the fastest step that fits into MEMORY bytes (0:
//                            no limit), the fastest of these with wire=fp32,
//                            and the one that needs least memory. Each "/"
//                            begins a choice: one of the texts after it, with
//                            settings that blanks separate. All combinations
//                            are tried
//     ["memory", WORD..]     of the rank that needs most, and of a server
//     ["law", WORD..]        hops and share (sync/law.h) of a backend's
//                            exchange, or of a collective of textbook/. With
//                            squeeze= of the run's compressed gradients
//     ["timetable", WORD..]  of a pipeline's schedule (pipeline/timetable.h)

#pragma once

struct cJSON;
struct forecasts;

// Opens the state of the questions. 0, or -1 after fail().
// forecasts_close() takes NULL.
int forecasts_open(struct forecasts **f);
void forecasts_close(struct forecasts **f);

// Answers a question, which begins with a verb, into the object *out. 0, or -1
// after fail().
int forecasts_answer(struct forecasts *f, const struct cJSON *question,
                     struct cJSON *out);
