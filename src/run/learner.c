/* learner.c: the thread that learns lessons, one at a time, beside the program.
 *
 * To plan takes seconds of several cores. A program that has few of them would wait for its own plan: planning takes what
 * the program leaves. Not so the driver, whose locks the program waits for: it is called from the thread itself, which makes
 * host memory meanwhile: what any plan needs first, and the rest of it when the plan is there. */
#include "base/background.h"
#include "run/learn.h"

/* Under a limit the first question is what has to leave, and the answer may be nothing. */
static np_phase first_phase(const np_lesson *lesson)
{
    return lesson->limit > 0 || lesson->limit_share > 0 ? NP_PHASE_SWAPS : NP_PHASE_PLACES;
}

static void plan(void *user)
{
    np_lesson_learn(user);
}

static void learn_and_prepare(np_lesson *lesson)
{
    np_background planning;
    np_background_begin(&planning, plan, lesson);
    np_lesson_prepare_least(lesson);
    np_background_end(&planning);
    np_lesson_prepare_host(lesson);
}

static void *work(void *user)
{
    np_learner *learner = user;
    (void)pthread_mutex_lock(&learner->lock);
    while (!atomic_load(&learner->is_stopping)) {
        np_lesson *lesson = learner->lesson;
        if (!lesson) {
            (void)pthread_cond_wait(&learner->changed, &learner->lock);
            continue;
        }
        (void)pthread_mutex_unlock(&learner->lock);
        learn_and_prepare(lesson);
        (void)pthread_mutex_lock(&learner->lock);
        learner->lesson = NULL;
        learner->learned = lesson;
        atomic_store(&learner->has_news, true);
    }
    (void)pthread_mutex_unlock(&learner->lock);
    return NULL;
}

neap_status np_learner_init(np_learner *learner)
{
    *learner = (np_learner){0};
    if (pthread_mutex_init(&learner->lock, NULL) != 0) {
        return NEAP_NO_MEMORY;
    }
    if (pthread_cond_init(&learner->changed, NULL) != 0) {
        (void)pthread_mutex_destroy(&learner->lock);
        return NEAP_NO_MEMORY;
    }
    return NEAP_OK;
}

void np_learner_free(np_learner *learner)
{
    if (learner->is_started) {
        (void)pthread_mutex_lock(&learner->lock);
        atomic_store(&learner->is_stopping, true);
        atomic_store(&learner->must_end, true);
        (void)pthread_cond_broadcast(&learner->changed);
        (void)pthread_mutex_unlock(&learner->lock);
        (void)pthread_join(learner->thread, NULL);
    }
    np_lesson_free(learner->lesson);
    np_lesson_free(learner->learned);
    (void)pthread_cond_destroy(&learner->changed);
    (void)pthread_mutex_destroy(&learner->lock);
}

neap_status np_learner_give(np_learner *learner, np_lesson *lesson)
{
    if (learner->learns_at_once) {
        np_lesson_prepare_least(lesson);
        np_lesson_learn(lesson);
        np_lesson_prepare_host(lesson);
        learner->learned = lesson;
        atomic_store(&learner->is_busy, true);
        atomic_store(&learner->has_news, true);
        return NEAP_OK;
    }
    if (!learner->is_started) {
        if (pthread_create(&learner->thread, NULL, work, learner) != 0) {
            return NEAP_DEVICE_FAILED;
        }
        learner->is_started = true;
    }
    lesson->phase = &learner->phase;
    lesson->is_stopping = &learner->must_end;
    learner->is_better = lesson->is_replan;
    learner->is_cancelled = false;
    atomic_store(&learner->must_end, false);
    (void)pthread_mutex_lock(&learner->lock);
    learner->lesson = lesson;
    atomic_store(&learner->phase, (int)first_phase(lesson));
    atomic_store(&learner->is_busy, true);
    (void)pthread_cond_broadcast(&learner->changed);
    (void)pthread_mutex_unlock(&learner->lock);
    return NEAP_OK;
}

void np_learner_cancel(np_learner *learner)
{
    if (learner->is_started && learner->is_better && atomic_load(&learner->is_busy)) {
        learner->is_cancelled = true;
        atomic_store(&learner->must_end, true);
    }
}

np_lesson *np_learner_take(np_learner *learner)
{
    np_lesson *lesson;
    if (!atomic_load(&learner->has_news)) {
        return NULL;
    }
    (void)pthread_mutex_lock(&learner->lock);
    lesson = learner->learned;
    learner->learned = NULL;
    lesson->is_cancelled = learner->is_cancelled;
    atomic_store(&learner->has_news, false);
    atomic_store(&learner->is_busy, false);
    (void)pthread_mutex_unlock(&learner->lock);
    return lesson;
}
